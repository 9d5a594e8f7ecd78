package dev.millrace.benchmarks.corrections;

import java.io.PrintStream;
import java.util.Collection;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import org.openjdk.jmh.results.RunResult;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.RunnerException;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.runner.options.VerboseMode;
import org.openjdk.jmh.util.Statistics;

/**
 * Runs {@link RolloutCorrectionBenchmark} and prints tokens per second, the bandwidth against a plain copy, and the
 * factor over the reference's vectorised CPU implementation.
 *
 * <p>The best batch and the median one are printed: where other work shares the machine, the best is what the code does
 * and the median is what the machine had left.
 */
public final class RolloutCorrectionSpeed {
    /** Bytes a correction must move per token: two log-probs and a mask read, a weight and a mask written. */
    private static final double BYTES_PER_TOKEN = 14.0;
    /** PyTorch 1.13, the same preset and metrics, 2^20 tokens in 512 sequences, on one thread. */
    private static final double REFERENCE_TOKENS_PER_SECOND = 8.4e6;

    private RolloutCorrectionSpeed() {}

    public static void main(String[] arguments) throws RunnerException {
        print(
                new Runner(new OptionsBuilder()
                                .include(RolloutCorrectionBenchmark.class.getSimpleName())
                                .verbosity(VerboseMode.SILENT)
                                .build())
                        .run(),
                System.out);
    }

    private static void print(Collection<RunResult> results, PrintStream out) {
        Map<String, Statistics> copies = new TreeMap<>();
        results.stream()
                .filter(result -> name(result).equals("copy"))
                .forEach(result -> copies.put(variant(result), milliseconds(result)));
        out.println("machine: " + System.getProperty("os.arch") + ", "
                + Runtime.getRuntime().availableProcessors() + " processors, " + System.getProperty("java.vm.name")
                + " " + Runtime.version());
        out.println(
                "variant              benchmark    | M tokens/s best, median | GB/s best | of a copy | of the reference");
        for (RunResult result : results) {
            if (!name(result).equals("copy")) {
                out.println(row(result, Objects.requireNonNull(copies.get(variant(result)))));
            }
        }
    }

    private static String row(RunResult result, Statistics copy) {
        double tokens = Double.parseDouble(result.getParams().getParam("tokens"));
        Statistics times = milliseconds(result);
        double best = tokens / times.getMin() * 1e3;
        double median = tokens / times.getPercentile(50) * 1e3;
        double bandwidth = BYTES_PER_TOKEN * best / 1e9;
        return String.format(
                Locale.ROOT,
                "%-20s %-12s | %8.1f, %-8.1f      | %6.2f    | %6.1f %%  | %5.1f, %.1f",
                variant(result),
                name(result),
                best / 1e6,
                median / 1e6,
                bandwidth,
                100 * copy.getMin() / times.getMin(),
                best / REFERENCE_TOKENS_PER_SECOND,
                median / REFERENCE_TOKENS_PER_SECOND);
    }

    private static String name(RunResult result) {
        String benchmark = result.getParams().getBenchmark();
        return benchmark.substring(benchmark.lastIndexOf('.') + 1);
    }

    private static String variant(RunResult result) {
        return result.getParams().getParam("mask") + " spread "
                + result.getParams().getParam("spread");
    }

    private static Statistics milliseconds(RunResult result) {
        return result.getPrimaryResult().getStatistics();
    }
}
