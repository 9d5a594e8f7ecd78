package dev.millrace.benchmarks.learner;

import com.sun.management.OperatingSystemMXBean;
import dev.millrace.benchmarks.engine.RandomLlama;
import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.stage.ControlState;
import dev.millrace.learner.batch.TrainingBatch;
import dev.millrace.learner.step.BatchOptimizer;
import dev.millrace.learner.step.StepConfig;
import dev.millrace.policy.autodiff.AdamW;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.weights.Weights;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/**
 * What {@code learner.step.recompute} costs a whole step of the learner in time, and what it saves of memory: the same step with and without, in
 * turns, one pair a round, the second of one round first in the next. Then a process for each takes a few steps and says the largest
 * resident size, since what an allocator has once taken it does not give back.
 *
 * <p>Arguments: {@code 0.1m} (the default task's model and batch) or a {@link RandomLlama}, and how many rounds. Reads Linux's {@code /proc}.
 */
public final class RecomputeSpeed {
    private static final int STEPS_FOR_MEMORY = 3;

    private RecomputeSpeed() {}

    public static void main(String[] arguments) throws IOException, InterruptedException {
        StepInput input = arguments[0].equals("0.1m")
                ? StepInput.inc()
                : StepInput.eight(arguments[0], RandomLlama.shape(arguments[0]));
        if (arguments[1].equals("memory")) {
            memory(input, Boolean.parseBoolean(arguments[2]));
            return;
        }
        System.out.printf(
                Locale.ROOT,
                "%s, %d processors, load average %.1f, %s %s%n%s: %.1f M parameters, %d tokens a batch%n",
                System.getProperty("os.arch"),
                Runtime.getRuntime().availableProcessors(),
                ManagementFactory.getOperatingSystemMXBean().getSystemLoadAverage(),
                System.getProperty("java.vm.name"),
                Runtime.version(),
                input.name(),
                input.shape().parameterCount() / 1e6,
                input.tokens());
        compare(input, Integer.parseInt(arguments[1]));
        for (boolean recompute : new boolean[] {false, true}) {
            if (child(arguments[0], recompute) != 0) {
                throw new IllegalStateException("the process that was to take steps for their memory failed");
            }
        }
    }

    private static BatchOptimizer optimizer(StepInput input, boolean recompute) {
        StepConfig d = StepConfig.defaults();
        return new BatchOptimizer(
                Engine.cpu(),
                input.shape(),
                new StepConfig(
                        d.optimizer(), d.tokensPerMicrobatch(), d.memoryMb(), recompute, d.logitsMb(), d.shards()),
                Algorithm.defaults());
    }

    private static void compare(StepInput input, int rounds) {
        TrainingBatch batch = input.batch();
        Weights weights = Weights.random(input.shape(), 2);
        double[][] wall = new double[2][rounds];
        double[][] processor = new double[2][rounds];
        try (BatchOptimizer kept = optimizer(input, false);
                BatchOptimizer recomputed = optimizer(input, true)) {
            for (int round = -1; round < rounds; round++) { // one to warm up
                for (int turn = 0; turn < 2; turn++) {
                    int which = (turn + round) & 1;
                    BatchOptimizer optimizer = which == 0 ? kept : recomputed;
                    AdamW adamW = optimizer.newOptimizer();
                    Weights own = weights.copy();
                    long cpu = processorNanos();
                    long start = System.nanoTime();
                    optimizer.train(batch, 1, ControlState.initial(), own, adamW);
                    if (round >= 0) {
                        wall[which][round] = (System.nanoTime() - start) / 1e9;
                        processor[which][round] = (processorNanos() - cpu) / 1e9;
                    }
                }
            }
        }
        report("by the clock", wall);
        report("of processor time", processor);
    }

    private static void report(String what, double[][] seconds) {
        double[] ratios = new double[seconds[0].length];
        Arrays.setAll(ratios, round -> seconds[1][round] / seconds[0][round]);
        Arrays.sort(ratios);
        System.out.printf(
                Locale.ROOT,
                "%-18s kept %8.1f ms, recomputed %8.1f ms; ratio of a pair %.2f (%.2f to %.2f), %d pairs%n",
                what,
                1e3 * median(seconds[0]),
                1e3 * median(seconds[1]),
                ratios[ratios.length / 2],
                ratios[0],
                ratios[ratios.length - 1],
                ratios.length);
    }

    /** Of all threads of this process: what a busy machine cannot stretch. */
    private static long processorNanos() {
        return ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class).getProcessCpuTime();
    }

    private static double median(double[] values) {
        double[] sorted = values.clone();
        Arrays.sort(sorted);
        return sorted[sorted.length / 2];
    }

    /** This program again, with the same options, for one kind of step. */
    private static int child(String size, boolean recompute) throws IOException, InterruptedException {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(ManagementFactory.getRuntimeMXBean().getInputArguments());
        command.addAll(List.of(RecomputeSpeed.class.getName(), size, "memory", Boolean.toString(recompute)));
        ProcessBuilder process = new ProcessBuilder(command).inheritIO();
        process.environment()
                .put("CLASSPATH", System.getProperty("java.class.path")); // the runtime takes no long command
        return process.start().waitFor();
    }

    private static void memory(StepInput input, boolean recompute) throws IOException {
        TrainingBatch batch = input.batch();
        Weights weights = Weights.random(input.shape(), 2);
        try (BatchOptimizer optimizer = optimizer(input, recompute)) {
            AdamW adamW = optimizer.newOptimizer();
            long before = kilobytes("VmRSS:");
            for (int step = 0; step < STEPS_FOR_MEMORY; step++) {
                optimizer.train(batch, 1, ControlState.initial(), weights, adamW);
            }
            long most = kilobytes("VmHWM:");
            System.out.printf(
                    Locale.ROOT,
                    "%-18s resident %d MB at most, %d MB above what it had before its first step%n",
                    recompute ? "recomputed" : "kept",
                    most >> 10,
                    most - before >> 10);
        }
    }

    private static long kilobytes(String field) throws IOException {
        return Files.readAllLines(Path.of("/proc/self/status")).stream()
                .filter(line -> line.startsWith(field))
                .mapToLong(line -> Long.parseLong(line.replaceAll("[^0-9]", "")))
                .findFirst()
                .orElseThrow();
    }
}
