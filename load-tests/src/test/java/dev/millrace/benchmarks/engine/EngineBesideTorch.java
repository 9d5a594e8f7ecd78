package dev.millrace.benchmarks.engine;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.Precision;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.WeightPlacement;
import dev.millrace.policy.weights.Weights;
import dev.millrace.workloads.closed.EngineModel;
import dev.millrace.workloads.closed.EnginePlan;
import dev.millrace.workloads.closed.EngineTrial.EngineWork;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * The engine next to eager PyTorch, on one thread each: in every round each does every kind of work once, one after the other, so
 * that what else runs on the machine meets both alike. PyTorch runs in {@code load-tests/src/test/python/torch_engine.py}.
 *
 * <p>Arguments: a size of {@link EngineModel}, how many rounds, and by choice prompt and sampled tokens of each sequence.
 * {@code -Dpacked=true} packs the weights into the graphs that generate, {@code -Dupdate=false}
 * leaves the optimisers out, which take twice the weights each.
 */
public final class EngineBesideTorch {
    private static final int SEQUENCES = 8;
    private static final int PER_CALL = 4;
    private static final int TOKEN_BUDGET = 8192;

    private EngineBesideTorch() {}

    private enum Work {
        PREFILL(0.9),
        DECODE(1.3),
        GRADIENT(1.0),
        UPDATE(Double.NaN),
        /** Nothing there: PyTorch reads the weights as they are. */
        PREPARE(Double.NaN);

        /** Least rate as a multiple of PyTorch's; NaN if none is asked for. */
        private final double goal;

        Work(double goal) {
            this.goal = goal;
        }

        private void run(EngineWork ours) {
            switch (this) {
                case PREFILL -> ours.takePrompts();
                case DECODE -> ours.sample();
                case GRADIENT -> ours.accumulate();
                case UPDATE -> ours.update();
                case PREPARE -> ours.prepare();
            }
        }

        private int tokens(EnginePlan plan) {
            return plan.sequences()
                    * switch (this) {
                        case PREFILL -> plan.promptTokens();
                        case DECODE -> plan.sampledTokens();
                        case GRADIENT, UPDATE, PREPARE -> plan.length();
                    };
        }
    }

    private record Turn(double ours, double torch) {
        double ratio() {
            return torch / ours;
        }
    }

    public static void main(String[] arguments) throws Exception {
        EngineModel model = EngineModel.parse(arguments[0]);
        int rounds = Integer.parseInt(arguments[1]);
        int prompt = arguments.length > 2 ? Integer.parseInt(arguments[2]) : 128;
        int sampled = arguments.length > 3 ? Integer.parseInt(arguments[3]) : 64;
        WeightPlacement placement = Boolean.getBoolean("packed") ? WeightPlacement.PACKED : WeightPlacement.FED;
        EnginePlan plan =
                new EnginePlan(SEQUENCES, prompt, sampled, PER_CALL, TOKEN_BUDGET, placement, Precision.F32, rounds);
        DecoderShape shape = model.shape();
        List<Work> works = Arrays.stream(Work.values())
                .filter(work -> work.goal > 0 || Boolean.parseBoolean(System.getProperty("update", "true")))
                .toList();
        Map<Work, List<Turn>> turns = new EnumMap<>(Work.class);
        try (TorchEngine torch = TorchEngine.start(shape, plan);
                EngineWork ours = new EngineWork(Engine.cpu(), Weights.random(shape, 1), plan)) {
            System.out.printf(
                    Locale.ROOT,
                    "%s, %s %s, %s of %.1f M parameters, %d sequences of %d + %d tokens; %s%n",
                    System.getProperty("os.arch"),
                    System.getProperty("java.vm.name"),
                    Runtime.version(),
                    model,
                    shape.parameterCount() / 1e6,
                    SEQUENCES,
                    prompt,
                    sampled,
                    torch.version());
            for (int round = -1; round < rounds; round++) {
                for (Work work : works) {
                    Turn turn = turn(work, ours, torch, round % 2 == 0);
                    if (round >= 0) {
                        turns.computeIfAbsent(work, w -> new ArrayList<>()).add(turn);
                    }
                }
            }
        }
        turns.forEach((work, all) -> report(work, plan, all));
    }

    private static Turn turn(Work work, EngineWork ours, TorchEngine torch, boolean oursFirst) throws Exception {
        double first = oursFirst ? seconds(work, ours) : torch.seconds(work.name());
        double second = oursFirst ? torch.seconds(work.name()) : seconds(work, ours);
        return oursFirst ? new Turn(first, second) : new Turn(second, first);
    }

    private static double seconds(Work work, EngineWork ours) {
        long start = System.nanoTime();
        work.run(ours);
        return (System.nanoTime() - start) / 1e9;
    }

    private static void report(Work work, EnginePlan plan, List<Turn> turns) {
        double[] ours = turns.stream().mapToDouble(Turn::ours).sorted().toArray();
        double[] torch = turns.stream().mapToDouble(Turn::torch).sorted().toArray();
        double[] ratios = turns.stream().mapToDouble(Turn::ratio).sorted().toArray();
        int middle = turns.size() / 2;
        int tokens = work.tokens(plan);
        System.out.printf(
                Locale.ROOT,
                "%-9s %8.0f tokens/s, PyTorch %8.0f, %.2f times its rate (%.2f to %.2f)%s%n",
                work.name().toLowerCase(Locale.ROOT),
                tokens / ours[middle],
                tokens / torch[middle],
                ratios[middle],
                ratios[0],
                ratios[ratios.length - 1],
                Double.isNaN(work.goal) ? "" : String.format(Locale.ROOT, ", goal %.1f", work.goal));
    }
}
