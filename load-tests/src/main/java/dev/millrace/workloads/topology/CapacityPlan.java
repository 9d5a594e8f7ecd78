package dev.millrace.workloads.topology;

import dev.millrace.report.Column;
import dev.millrace.report.Sample;
import dev.millrace.report.Section;
import dev.millrace.report.Table;
import dev.millrace.workloads.topology.GrowthBenchmark.Cost;
import dev.millrace.workloads.topology.GrowthBenchmark.Dimension;
import dev.millrace.workloads.topology.GrowthBenchmark.Growth;
import dev.millrace.workloads.topology.GrowthBenchmark.Measured;
import dev.millrace.workloads.topology.GrowthBenchmark.PowerLaw;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.function.ToDoubleFunction;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Sizes a cluster for a load from {@linkplain GrowthBenchmark growth figures}: every line names what was measured, and
 * how far beyond it the line reaches.
 *
 * @param figures machine, commit and command of the measurement
 */
public record CapacityPlan(Load load, List<String> figures, List<Line> lines) {
    /** Copies of every record on the planned brokers; the figures have one. */
    private static final int COPIES = 3;
    /** Share of its processors that an instance or broker uses, so that it can catch up after a restart. */
    private static final double USED = 0.5;

    private static final int PARTITIONS_PER_INSTANCE = 2;
    /** Factor beyond the measured lengths that is still planned. */
    private static final double FARTHEST = 10;

    private static final double SECONDS_PER_HOUR = 3600;
    private static final double HOURS_PER_DAY = 24;

    /**
     * @param policies runs of one policy each, with their own topics and topology
     * @param responseTokens of a rollout, mean
     */
    public record Load(int generators, double tokensPerSecond, int policies, int responseTokens, int batchSequences) {
        public Load {
            requireBetween("--generators", generators, 1, 1e6);
            requireBetween("--tokens-per-second", tokensPerSecond, 1, 1e9);
            requireBetween("--policies", policies, 1, 1e4);
            requireBetween("--response-tokens", responseTokens, 1, 1e6);
            requireBetween("--batch-sequences", batchSequences, 1, 1e6);
            if (policies > generators) {
                throw new IllegalArgumentException("cannot plan: --policies is " + policies
                        + ", expected at most one for each of --generators " + generators);
            }
        }

        private static void requireBetween(String option, double value, double least, double most) {
            if (!(value >= least && value <= most)) {
                throw new IllegalArgumentException(String.format(
                        Locale.ROOT, "cannot plan: %s is %,.0f, expected %,.0f to %,.0f", option, value, least, most));
            }
        }

        double rolloutsPerSecond() {
            return tokensPerSecond / responseTokens;
        }
    }

    /**
     * @param measured the figures behind the value
     * @param extrapolated what lies beyond them; empty if nothing
     * @param factor how far beyond, 1 if nothing
     */
    public record Line(String what, double value, String unit, String measured, String extrapolated, double factor) {
        public String planned() {
            return format(value < 100 && value != Math.rint(value) ? "%.3g" : "%,.0f", value);
        }

        /** How far beyond the figures; empty if not. */
        public String by() {
            return factor > 1 ? format(factor < 100 ? "%.2g times" : "%,.0f times", factor) : "";
        }
    }

    /** What lies beyond a measured range. */
    private record Beyond(String text, double factor) {
        static Beyond of(String what, double value, double least, double most) {
            double factor = Math.max(value / most, least / value);
            return factor <= 1
                    ? new Beyond("", 1)
                    : new Beyond(
                            format("%s %,.0f, measured ", what, value)
                                    + (least == most ? format("%,.0f", most) : format("%,.0f to %,.0f", least, most)),
                            factor);
        }
    }

    /** @throws IllegalArgumentException if the load lies too far beyond the figures */
    public static CapacityPlan of(Load load, GrowthBenchmark.Report figures) {
        return new Sizing(load, figures).plan();
    }

    private static final class Sizing {
        private final Load load;
        private final GrowthBenchmark.Report figures;
        private final List<Measured> lengths;
        private final Beyond length;

        Sizing(Load load, GrowthBenchmark.Report figures) {
            this.load = load;
            this.figures = figures;
            this.lengths = figures.over(Dimension.RESPONSE_TOKENS);
            this.length = beyond("response tokens", load.responseTokens(), Dimension.RESPONSE_TOKENS);
            if (length.factor() > FARTHEST) {
                throw new IllegalArgumentException(format(
                        "cannot plan: --%s, expected at most %.0f times beyond; measure such lengths: load-test growth --tokens",
                        length.text().replace("response tokens", "response-tokens is"), FARTHEST));
            }
        }

        private Beyond beyond(String what, double value, Dimension dimension) {
            List<Measured> over = figures.over(dimension);
            return Beyond.of(
                    what,
                    value,
                    over.get(0).at().of(dimension),
                    over.get(over.size() - 1).at().of(dimension));
        }

        /** A median cost at the load's length: a power law between, and beyond, the two nearest measured lengths. */
        private double cost(ToDoubleFunction<Cost> of) {
            int right = 1;
            while (right < lengths.size() - 1 && lengths.get(right).at().responseTokens() < load.responseTokens()) {
                right++;
            }
            double[] x = lengths.stream()
                    .mapToDouble(each -> each.at().responseTokens())
                    .toArray();
            double[] y = lengths.stream()
                    .map(each -> each.sample(of))
                    .mapToDouble(Sample::median)
                    .toArray();
            if (x.length == 1) {
                return y[0] * load.responseTokens() / x[0];
            }
            double exponent = y[right] > 0 && y[right - 1] > 0
                    ? Math.log(y[right] / y[right - 1]) / Math.log(x[right] / x[right - 1])
                    : 0;
            return y[right] * Math.pow(load.responseTokens() / x[right], exponent);
        }

        /** Factor on the processor time of a rollout; a fall with the dimension is not counted on. */
        private double growth(Dimension dimension, double value) {
            double base = figures.base().of(dimension);
            return Math.pow(
                    Math.max(1, value / base), Math.max(0, fit(dimension).exponent()));
        }

        /** Of the processor time; an exponent of 0 if the dimension was not varied. */
        private PowerLaw fit(Dimension dimension) {
            return figures.growth().stream()
                    .filter(each -> each.dimension() == dimension && each.cost().equals(GrowthBenchmark.PROCESSOR_TIME))
                    .map(Growth::fit)
                    .findFirst()
                    .orElse(new PowerLaw(0, 0));
        }

        private int partitions(int instances) {
            return Math.max(Dimension.PARTITIONS.base(), PARTITIONS_PER_INSTANCE * instances);
        }

        private double micros(int instances) {
            return cost(Cost::processorMicros)
                    * growth(Dimension.PARTITIONS, partitions(instances))
                    * growth(Dimension.INSTANCES, instances);
        }

        private int instancesPerPolicy() {
            List<Measured> over = figures.over(Dimension.INSTANCES);
            int most = over.get(over.size() - 1).at().instances();
            double rate = load.rolloutsPerSecond() / load.policies();
            for (int instances = 1; instances <= most; instances++) {
                if (rate * micros(instances) / 1e6 <= USED * instances) {
                    return instances;
                }
            }
            throw new IllegalArgumentException(format(
                    "cannot plan: a policy's topology needs %.1f processors for --tokens-per-second %,.0f and --policies %d, "
                            + "expected at most %.1f, half of the %d instances measured: one task of a policy makes "
                            + "all of its batches; spread the load over more --policies",
                    rate * micros(most) / 1e6, load.tokensPerSecond(), load.policies(), USED * most, most));
        }

        CapacityPlan plan() {
            double rate = load.rolloutsPerSecond();
            int instances = instancesPerPolicy();
            int partitions = partitions(instances);
            double brokerMicros = cost(Cost::brokerMicros);
            double brokerProcessors = rate * brokerMicros * COPIES / 1e6;
            int brokers = (int) Math.max(COPIES, Math.ceil(brokerProcessors / (USED * processors())));
            double rollouts = cost(cost -> cost.log().rollouts());
            double scores = cost(cost -> cost.log().scores());
            double trajectories = cost(cost -> cost.log().trajectories());
            double batches = cost(cost -> cost.log().batches());
            double written = rollouts
                    + scores
                    + trajectories
                    + batches
                    + cost(cost -> cost.log().others());
            double in = rate * written * COPIES / brokers;
            // rollouts go to scorer and topology, trajectories to assembly and learner
            double read = 2 * rollouts + scores + 2 * trajectories + batches;
            double out = rate * (read + (COPIES - 1) * written) / brokers;
            double steps = rate / load.batchSequences();
            String log = format("%,.1f kB a rollout on the log", written / 1e3);
            Beyond copies = new Beyond(COPIES + " copies, measured 1", COPIES);
            PowerLaw overRollouts = fit(Dimension.ROLLOUTS);
            Beyond day = beyond(
                    "rollouts of a policy",
                    rate / load.policies() * SECONDS_PER_HOUR * HOURS_PER_DAY,
                    Dimension.ROLLOUTS);
            List<Line> lines = new ArrayList<>();
            lines.add(line("rollouts", rate, "1/s", "computed: tokens a second over tokens a response"));
            lines.add(line(
                    "topology instances",
                    (double) load.policies() * instances,
                    "",
                    format("%,.0f us of processor time a rollout; one thread each, half used", micros(instances)),
                    length,
                    beyond("partitions", partitions, Dimension.PARTITIONS)));
            lines.add(line(
                    "topics.partitions",
                    partitions,
                    "a policy",
                    format(
                            "exponent %.2f of the processor time",
                            fit(Dimension.PARTITIONS).exponent()),
                    beyond("partitions", partitions, Dimension.PARTITIONS)));
            lines.add(line(
                    "brokers",
                    brokers,
                    "",
                    format(
                            "%,.0f us of a broker's processor time a rollout; %d processors each, half used",
                            brokerMicros, processors()),
                    length,
                    copies,
                    Beyond.of("producers", load.generators(), 1, 1)));
            lines.add(line("network in, a broker", in / 1e6, "MB/s", log, length, copies));
            lines.add(line(
                    "network out, a broker",
                    out / 1e6,
                    "MB/s",
                    log + "; read by scorer, topology, learner and followers",
                    length,
                    copies));
            lines.add(line(
                    "disk, a broker",
                    rate * written * COPIES / brokers * SECONDS_PER_HOUR / 1e9,
                    "GB/h",
                    log + "; topics.* retention bounds it",
                    length,
                    copies));
            lines.add(line(
                    "steps",
                    steps / load.policies(),
                    "1/s a policy",
                    "computed: rollouts a second over sequences a batch"));
            lines.add(line(
                    "weights out, a broker, a MB of a version",
                    load.generators() * steps / load.policies() / brokers,
                    "MB/s",
                    "computed: every generator reads every version of its policy"));
            lines.add(line(
                    "processor time of a rollout after a day, at most",
                    Math.pow(day.factor(), Math.max(0, overRollouts.exponent() + 2 * overRollouts.standardError())),
                    "times",
                    format(
                            "exponent %.3f, standard error %.3f over rollouts",
                            overRollouts.exponent(), overRollouts.standardError()),
                    day));
            return new CapacityPlan(load, figures.origin().lines(), lines);
        }

        private int processors() {
            return figures.origin().processors();
        }

        private static Line line(String what, double value, String unit, String measured, Beyond... beyond) {
            return new Line(
                    what,
                    value,
                    unit,
                    measured,
                    Stream.of(beyond)
                            .map(Beyond::text)
                            .filter(text -> !text.isEmpty())
                            .collect(Collectors.joining("; ")),
                    Stream.of(beyond).mapToDouble(Beyond::factor).max().orElse(1));
        }
    }

    private static String format(String pattern, Object... values) {
        return String.format(Locale.ROOT, pattern, values);
    }

    public dev.millrace.report.Report report() {
        List<Column<Line>> columns = List.of(
                Column.text("", Line::what),
                Column.text("planned", Line::planned),
                Column.text("", Line::unit),
                Column.text("beyond the figures", Line::by));
        List<String> notes = new ArrayList<>();
        for (Line line : lines) {
            notes.add(line.what() + ": " + line.measured()
                    + (line.extrapolated().isEmpty() ? "" : "; extrapolated: " + line.extrapolated()) + ".");
        }
        notes.addAll(figures);
        return dev.millrace.report.Report.of(
                        "Plan",
                        List.of(format(
                                "%,d generators, %,.0f tokens/s, %d policies, %,d tokens a response, %,d sequences a batch.",
                                load.generators(),
                                load.tokensPerSecond(),
                                load.policies(),
                                load.responseTokens(),
                                load.batchSequences())))
                .with(Section.of("").with(Table.of("", columns, lines)).noting(notes));
    }
}
