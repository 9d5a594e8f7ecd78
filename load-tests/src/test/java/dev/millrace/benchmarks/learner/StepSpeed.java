package dev.millrace.benchmarks.learner;

import com.sun.management.OperatingSystemMXBean;
import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.algorithm.Mode;
import dev.millrace.corrections.objective.DecoupledPpo;
import dev.millrace.corrections.stage.ControlState;
import dev.millrace.corrections.vcpo.Opob;
import dev.millrace.learner.batch.TrainingBatch;
import dev.millrace.learner.step.BatchOptimizer;
import dev.millrace.learner.step.StepConfig;
import dev.millrace.policy.autodiff.AdamW;
import dev.millrace.policy.session.Device;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.weights.Weights;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;

/**
 * Times whole steps of the learner (corrections, forward, backward, AdamW) on synthetic batches, in rounds that take every
 * variant once, so that what else runs on the machine meets all of them alike. Prints wall-clock and processor time; the ratio
 * is of processor time, which does not grow because others use the machine too.
 *
 * <p>{@code memory BUDGET SEQUENCES [opob]} instead takes a few steps in this process and prints its largest resident size.
 */
public final class StepSpeed {
    private static final int ROUNDS = 15;

    private StepSpeed() {}

    public static void main(String[] arguments) throws IOException {
        System.out.println("machine: " + System.getProperty("os.arch") + ", "
                + Runtime.getRuntime().availableProcessors() + " processors, " + System.getProperty("java.vm.name")
                + " " + Runtime.version());
        if (arguments.length >= 3 && arguments[0].equals("memory")) {
            boolean opob = arguments.length > 3 && arguments[3].equals("opob");
            memory(Integer.parseInt(arguments[1]), Integer.parseInt(arguments[2]), opob);
            return;
        }
        if (arguments.length > 0) {
            throw new IllegalArgumentException(
                    "what is known is: nothing, memory BUDGET SEQUENCES [opob]; not " + String.join(" ", arguments));
        }
        for (StepInput input : new StepInput[] {StepInput.inc(), StepInput.shortAnswers(), StepInput.longAnswers()}) {
            compare(input);
        }
    }

    /** A step as configured, by an engine with this many threads inside an operator. */
    private record Variant(Algorithm algorithm, StepConfig config, int intraOpThreads) {}

    private static Map<String, Variant> variants() {
        StepConfig step = StepConfig.defaults();
        StepConfig single = step.withCut(step.tokensPerMicrobatch(), 1);
        Algorithm recomputed = Algorithm.defaults();
        Algorithm recorded = recomputed.with(a -> a.mode(Mode.RECORDED));
        Map<String, Variant> variants = new LinkedHashMap<>();
        variants.put("recorded, 2 shards", new Variant(recorded, step, 1));
        variants.put("recomputed, 2 shards", new Variant(recomputed, step, 1));
        variants.put(
                "decoupled_ppo recomputed",
                new Variant(recomputed.with(a -> a.objective(DecoupledPpo.defaults())), step, 1));
        variants.put("recorded + opob", new Variant(recorded.with(a -> a.advantage(Opob.defaults())), step, 1));
        variants.put("recorded, 1 shard", new Variant(recorded, single, 1));
        variants.put("recorded, 1 shard x 2 op threads", new Variant(recorded, single, 2));
        return variants;
    }

    private static void compare(StepInput input) {
        Map<String, Variant> variants = variants();
        Map<String, double[]> seconds = new LinkedHashMap<>();
        Map<String, double[]> processor = new LinkedHashMap<>();
        Map<String, BatchOptimizer> optimizers = new LinkedHashMap<>();
        TrainingBatch batch = input.batch();
        Weights weights = Weights.random(input.shape(), 2);
        variants.forEach((name, variant) -> {
            seconds.put(name, new double[ROUNDS]);
            processor.put(name, new double[ROUNDS]);
            optimizers.put(
                    name,
                    new BatchOptimizer(
                            new Engine(Device.CPU, variant.intraOpThreads()),
                            input.shape(),
                            variant.config(),
                            variant.algorithm()));
        });
        for (int round = -2; round < ROUNDS; round++) { // two to warm up
            for (Map.Entry<String, BatchOptimizer> entry : optimizers.entrySet()) {
                AdamW adamW = entry.getValue().newOptimizer();
                Weights own = weights.copy();
                long cpu = processorNanos();
                long start = System.nanoTime();
                entry.getValue().train(batch, 1, ControlState.initial(), own, adamW);
                if (round >= 0) {
                    Objects.requireNonNull(seconds.get(entry.getKey()))[round] = (System.nanoTime() - start) / 1e9;
                    Objects.requireNonNull(processor.get(entry.getKey()))[round] = (processorNanos() - cpu) / 1e9;
                }
            }
        }
        optimizers.values().forEach(BatchOptimizer::close);
        System.out.printf(Locale.ROOT, "%n%s, %d tokens a batch%n", input.name(), input.tokens());
        double base = median(Objects.requireNonNull(processor.get("recorded, 2 shards")));
        seconds.forEach((name, times) -> System.out.printf(
                Locale.ROOT,
                "  %-34s %8.1f ms median, %8.1f least; processor %8.1f ms median, %5.2f of the first%n",
                name,
                median(times) * 1e3,
                Arrays.stream(times).min().orElseThrow() * 1e3,
                median(Objects.requireNonNull(processor.get(name))) * 1e3,
                median(Objects.requireNonNull(processor.get(name))) / base));
    }

    /** Of all threads of this process, compilers and collectors included: what a busy machine cannot stretch. */
    private static long processorNanos() {
        return ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class).getProcessCpuTime();
    }

    private static double median(double[] values) {
        double[] sorted = values.clone();
        Arrays.sort(sorted);
        return sorted[sorted.length / 2];
    }

    private static void memory(int budget, int sequences, boolean opob) throws IOException {
        StepInput input = StepInput.longAnswers().withSequences(sequences);
        StepConfig config = StepConfig.defaults().withCut(budget, 2);
        Algorithm algorithm =
                opob ? Algorithm.defaults().with(a -> a.advantage(Opob.defaults())) : Algorithm.defaults();
        try (BatchOptimizer optimizer = new BatchOptimizer(Engine.cpu(), input.shape(), config, algorithm)) {
            AdamW adamW = optimizer.newOptimizer();
            Weights weights = Weights.random(input.shape(), 2);
            for (int step = 0; step < 3; step++) {
                optimizer.train(input.batch(), 1, ControlState.initial(), weights, adamW);
            }
        }
        String peak = Files.readAllLines(Path.of("/proc/self/status")).stream()
                .filter(line -> line.startsWith("VmHWM"))
                .findFirst()
                .orElse("VmHWM: not said here");
        System.out.printf(
                "budget %d, %d sequences of 512%s: %s%n",
                budget, sequences, opob ? ", opob" : "", peak.replaceAll("\\s+", " "));
    }
}
