package dev.millrace.experiments;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.api.catalogue.ExtensionPoint;
import dev.millrace.api.plugin.Kind;
import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.advantage.SoftMaximum;
import dev.millrace.corrections.advantage.TrackedBaseline;
import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.objective.Objective;
import dev.millrace.corrections.objective.ObjectiveInput;
import dev.millrace.corrections.objective.UpdateFacts;
import dev.millrace.corrections.ratio.RatioKind;
import dev.millrace.corrections.stage.Decision;
import dev.millrace.corrections.stage.MaskStage;
import dev.millrace.corrections.stage.Stage;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageFacts;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.corrections.stage.StageOutcome;
import dev.millrace.corrections.stage.WeightStage;
import dev.millrace.corrections.trm.FullDistributions;
import dev.millrace.experiments.StalenessRuns.LaggedStep;
import dev.millrace.experiments.StalenessRuns.PromptSeries;
import dev.millrace.generator.environment.Environments;
import dev.millrace.generator.environment.GuessPrompts;
import dev.millrace.generator.environment.OwnVerdict;
import dev.millrace.generator.sampling.RolloutSampler;
import dev.millrace.generator.sampling.VersionedSample;
import dev.millrace.policy.autodiff.AdamW;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.EntryScores;
import dev.millrace.policy.session.GradientNormSession;
import dev.millrace.policy.session.ScoringSession;
import dev.millrace.policy.session.SequenceBatch;
import dev.millrace.policy.session.TokenScores;
import dev.millrace.policy.weights.Weights;
import dev.millrace.replay.GivenRollouts;
import dev.millrace.replay.ScoredRollouts;
import dev.millrace.report.Column;
import dev.millrace.report.Report;
import dev.millrace.report.ReportFolder;
import dev.millrace.report.ReportOrigin;
import dev.millrace.report.Sample;
import dev.millrace.report.Section;
import dev.millrace.report.Table;
import dev.millrace.runtime.config.ConfigLayers;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.stages.AlgorithmParts;
import dev.millrace.stages.BaselineMemory;
import dev.millrace.stages.RecordedFacts;
import dev.millrace.topology.batch.DirectBatches;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Consumer;
import java.util.function.Supplier;
import java.util.stream.DoubleStream;
import java.util.stream.IntStream;
import java.util.stream.LongStream;

/**
 * Every built-in kind of the algorithm's extension points, with its default settings, over the same recorded batch: on how
 * many tokens it acts, and its processor time.
 *
 * <p>The task is {@code guess}: one digit in eight turns, rewards 0 or 1. After an on-policy warm start the policy takes
 * {@code lag} more steps. Its batch has four groups of eight for each lag from 0; a later turn is by the version after that of the
 * first. The generator samples in int8; old, proximal and current log-probs are float32. Current is proximal one step later. The
 * teacher is the policy after as many steps again as the warm start. Values are the batch's mean reward.
 *
 * @param repetitions timed runs of each kind and seed, after as many untimed ones
 */
public record MethodRuns(List<Long> seeds, int lag, int warmUp, int repetitions) {
    private static final List<String> FILES = List.of("methods.csv", "methods.json");
    private static final RunIdentity RUN = new RunIdentity("experiment", 0, "policy");
    private static final GuessPrompts TASK = new GuessPrompts(1, 8);
    private static final DecoderShape MODEL = StalenessSettings.SMALL_MODEL;
    /** Of one lag. */
    private static final int SEQUENCES = 32;

    private static final int GROUP = 8;
    private static final double LEARNING_RATE = 1e-2;
    private static final int TOKEN_BUDGET = 4096;
    private static final AlgorithmParts PARTS = new AlgorithmParts();
    private static final Algorithm DEFAULTS = Algorithm.defaults();

    public MethodRuns {
        seeds = List.copyOf(seeds);
        if (seeds.isEmpty() || lag < 1 || warmUp < 0 || repetitions < 1) {
            throw new IllegalArgumentException("lag and repetitions must be at least 1, and a seed is needed: " + lag
                    + ", " + repetitions + " and " + seeds);
        }
    }

    /**
     * One kind over all seeds.
     *
     * @param acted of {@code tokens}, as the stage or the objective reports it
     * @param nanos processor time per trained token, the median over repetitions and seeds
     */
    public record Row(String key, String kind, long tokens, long acted, double nanos) {}

    /** A recorded batch with all that a kind may read, and the log-probs of the policy one step later. */
    private record Recorded(StageFacts facts, StageFacts earlier, float[] current) {
        Recorded with(StageFacts batchBefore) {
            return new Recorded(facts, batchBefore, current);
        }
    }

    /** Sums of one kind. */
    private static final class Tally {
        private long tokens;
        private long acted;
        private final List<Double> nanos = new ArrayList<>();
    }

    /**
     * Measures all kinds and writes {@code methods.csv}, with settings and origin in {@code methods.json}.
     *
     * @param said receives a line per seed
     */
    public Report write(Path directory, ReportOrigin origin, Consumer<String> said) throws IOException {
        List<Row> rows = run(said);
        List<Column<Row>> columns = List.of(
                Column.text("key", Row::key),
                Column.text("kind", Row::kind),
                Column.count("trained tokens", Row::tokens),
                Column.count("acted on", Row::acted),
                Column.significant("ns per token", 3, Row::nanos));
        ObjectMapper mapper = new ObjectMapper();
        ObjectNode json = mapper.createObjectNode();
        json.set("settings", mapper.valueToTree(this));
        json.set("origin", mapper.valueToTree(origin));
        try (ReportFolder files = ReportFolder.begin(directory, FILES)) {
            files.write("methods.csv", columns, rows);
            files.write("methods.json", json.toPrettyString() + "\n");
            files.finish();
        }
        return Report.of("Kinds over a recorded batch", List.of())
                .madeBy(origin)
                .with(Section.of("Kinds").with(Table.of("", columns, rows)));
    }

    List<Row> run(Consumer<String> said) {
        Map<Kind, Tally> tallies = new LinkedHashMap<>();
        PARTS.kinds().forEach(kind -> tallies.put(kind, new Tally()));
        for (long seed : seeds) {
            Recorded recorded = record(seed);
            tallies.forEach((kind, tally) -> measure(kind, recorded, tally));
            said.accept("seed " + seed + ": " + recorded.facts());
        }
        List<Row> rows = new ArrayList<>();
        for (ExtensionPoint point : PARTS.extensionPoints()) {
            tallies.forEach((kind, tally) -> {
                if (kind.extensionPoint().equals(point.type())) {
                    rows.add(new Row(
                            point.key(),
                            kind.name(),
                            tally.tokens,
                            tally.acted,
                            Math.round(10 * Sample.of(tally.nanos).median()) / 10.0));
                }
            });
        }
        return rows;
    }

    private void measure(Kind kind, Recorded recorded, Tally tally) {
        Supplier<long[]> once = kind.defaults() instanceof Objective objective
                ? objective(objective, recorded)
                : stage((Stage) kind.defaults(), recorded);
        for (int i = -repetitions; i < repetitions; i++) {
            long[] found = once.get();
            if (i == 0) {
                tally.tokens += found[0];
                tally.acted += found[1];
            }
            if (i >= 0) {
                tally.nanos.add(found[2] / (double) found[0]);
            }
        }
    }

    /** Tokens seen, tokens acted on, nanoseconds. Masks see the default advantages. */
    private static Supplier<long[]> stage(Stage of, Recorded recorded) {
        StageFacts facts;
        if (of instanceof TrackedBaseline tracked) {
            BaselineMemory memory = new BaselineMemory(tracked);
            memory.after(0, recorded.earlier());
            facts = memory.before(recorded.facts());
        } else {
            facts = recorded.facts();
        }
        Stage stage = of instanceof WeightStage weights ? weights.comparing(RatioKind.ANCHOR) : of;
        return () -> {
            Timed timed = new Timed(stage);
            Decision decision = StageBatch.decide(
                    facts, of instanceof MaskStage ? List.of(DEFAULTS.advantage(), timed) : List.of(timed));
            StageOutcome outcome = decision.outcomes().get(decision.outcomes().size() - 1);
            return new long[] {outcome.tokensSeen(), outcome.tokensActed(), timed.nanos};
        };
    }

    /** The same under the default advantages, and the default weights if the objective takes any. */
    private static Supplier<long[]> objective(Objective objective, Recorded recorded) {
        StageFacts facts = recorded.facts();
        List<Stage> before = new ArrayList<>();
        objective.weightsCompare().map(DEFAULTS.weights()::comparing).ifPresent(before::add);
        before.add(objective.regressesOnOptimalAdvantage() ? SoftMaximum.defaults() : DEFAULTS.advantage());
        Decision decision = StageBatch.decide(facts, before);
        ObjectiveInput plain = ObjectiveInput.of(facts.tokens(), recorded.current(), decision.perToken())
                .withBehavior(facts.vector(StageInput.BEHAVIOR))
                .withProximal(facts.vector(
                        switch (objective.anchor()) {
                            case PROXIMAL -> StageInput.PROXIMAL;
                            case OLD -> StageInput.OLD;
                            case BEHAVIOR -> StageInput.BEHAVIOR;
                        }));
        ObjectiveInput input = objective.weightsCompare().isPresent() ? plain.withWeights(decision.weights()) : plain;
        UpdateFacts update = UpdateFacts.of(objective.publishedAggregation());
        return () -> {
            long began = processorTime();
            int acted = objective.evaluate(input, update).actedOn().tokens();
            return new long[] {facts.tokens().trainedTokens(), acted, processorTime() - began};
        };
    }

    private static long processorTime() {
        return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
    }

    /** A stage that measures another one's processor time. */
    private static final class Timed implements Stage {
        private final Stage of;
        private long nanos;

        Timed(Stage of) {
            this.of = of;
        }

        @Override
        public String name() {
            return of.name();
        }

        @Override
        public CorrectionUnit unit() {
            return of.unit();
        }

        @Override
        public StageOutcome apply(StageBatch batch) {
            long began = processorTime();
            StageOutcome outcome = of.apply(batch);
            nanos = processorTime() - began;
            return outcome;
        }
    }

    private Recorded record(long seed) {
        StalenessSettings settings = new StalenessSettings(MODEL, 1, SEQUENCES, GROUP, LEARNING_RATE, warmUp, 1, 1, 1);
        PromptSeries series = new PromptSeries(TASK.task(), settings, seed);
        List<Weights> versions = new ArrayList<>();
        Weights policy = Weights.random(MODEL, seed);
        int steps = 2 * warmUp + lag + 2;
        try (LaggedStep step = new LaggedStep(series, settings, Correction.of("none"))) {
            AdamW optimizer = step.newOptimizer();
            for (int t = 0; t < steps; t++) {
                if (t >= warmUp && versions.size() < lag + 2) {
                    versions.add(policy.copy());
                }
                step.take(t, t, policy, t, policy, optimizer);
            }
        }
        Weights later = versions.remove(lag + 1);
        try (Recorder recorder = new Recorder(series, versions)) {
            StageFacts earlier = recorder.batch(steps, policy, later).facts();
            return recorder.batch(steps + lag + 1L, policy, later).with(earlier);
        }
    }

    /** Samples, scores and packs batches; owned by one thread. */
    private static final class Recorder implements AutoCloseable {
        private final PromptSeries series;
        private final List<Weights> versions;
        private final long newest;
        private final RolloutSampler sampler;
        private final ScoringSession scoring;
        private final GradientNormSession norms;

        Recorder(PromptSeries series, List<Weights> versions) {
            this.series = series;
            this.versions = versions;
            this.newest = versions.size() - 1L;
            Engine engine = Engine.cpu();
            int capacity = series.task().capacityTokens();
            this.sampler = new RolloutSampler(
                    engine,
                    MODEL,
                    Environments.of(series.task(), List.of(), new OwnVerdict(true)),
                    new ConfigLayers()
                            .set("generator.precision", "int8")
                            .resolve()
                            .generator()
                            .withSlots(SEQUENCES, capacity, capacity - 1),
                    Clock.fixed(Instant.EPOCH, ZoneOffset.UTC));
            this.scoring = new ScoringSession(engine, MODEL, TOKEN_BUDGET);
            this.norms = new GradientNormSession(engine, MODEL, TOKEN_BUDGET);
        }

        Recorded batch(long first, Weights teacher, Weights later) {
            List<VersionedSample> samples = new ArrayList<>();
            for (int behind = 0; behind <= newest; behind++) {
                for (PromptRequest request : series.batch(first + behind)) {
                    for (int i = 0; i < GROUP; i++) {
                        samples.add(new VersionedSample(request, i, spans(newest - behind)));
                    }
                }
            }
            List<Rollout> rollouts = sampler.sample(samples, this::weights);
            Weights proximal = weights(newest);
            ScoredRollouts scored = ScoredRollouts.of(rollouts, scoring, proximal);
            List<Trajectory> trajectories = new GivenRollouts(RUN).make(scored, newest);
            StageFacts facts = RecordedFacts.of(
                    new DirectBatches(RUN, DEFAULTS).make(first, trajectories, newest),
                    trajectories,
                    EnumSet.allOf(StageInput.class));
            SequenceBatch sequences = sequences(rollouts);
            TokenScores now = score(proximal, sequences);
            float[] trained = new float[facts.tokens().tokenCount()];
            float[] values = new float[trained.length];
            Arrays.fill(values, (float) scored.meanReward());
            for (int t = 0; t < trained.length; t++) {
                trained[t] = facts.tokens().trained(t);
            }
            StageFacts.Builder more = facts.toBuilder()
                    .vector(StageInput.TEACHER, score(teacher, sequences).logProbs())
                    .vector(StageInput.ENTROPIES, now.entropies())
                    .vector(StageInput.SQUARED_PROBABILITIES, now.sumSquaredProbs())
                    .vector(StageInput.VALUES, values)
                    .gradientNorms(norms.norms(proximal, sequences, temperatures(sequences), trained))
                    .greedyRewards(greedy(first))
                    .rewardComponents(rollouts.stream()
                            .map(rollout -> Map.of(
                                    "found",
                                    rollout.getReward(),
                                    "guesses",
                                    -rollout.getRewardComponents().getOrDefault("guesses", 0.0)))
                            .toList());
            addOld(more, facts, sequences);
            return new Recorded(more.build(), facts, score(later, sequences).logProbs());
        }

        /** The first turn by one version, the rest by the next. */
        private List<VersionSpan> spans(long version) {
            int turn = TASK.digits() + 1;
            return List.of(
                    new VersionSpan(version, 0, turn), new VersionSpan(Math.min(newest, version + 1), turn, turn + 1));
        }

        private Weights weights(long version) {
            return versions.get(Math.toIntExact(version));
        }

        private static SequenceBatch sequences(List<Rollout> rollouts) {
            int[][] tokens = new int[rollouts.size()][];
            int[] firstScored = new int[tokens.length];
            for (int s = 0; s < tokens.length; s++) {
                int[] prompt = PackedInts.toArray(rollouts.get(s).getPromptTokens());
                int[] response = PackedInts.toArray(rollouts.get(s).getResponseTokens());
                firstScored[s] = prompt.length;
                tokens[s] = Arrays.copyOf(prompt, prompt.length + response.length);
                System.arraycopy(response, 0, tokens[s], prompt.length, response.length);
            }
            return new SequenceBatch(tokens, firstScored);
        }

        private TokenScores score(Weights weights, SequenceBatch sequences) {
            return scoring.score(weights, sequences, temperatures(sequences));
        }

        private static float[] temperatures(SequenceBatch sequences) {
            float[] ones = new float[sequences.sequenceCount()];
            Arrays.fill(ones, 1f);
            return ones;
        }

        /** Rewards of the newest version's greedy answers, one per sequence. */
        private double[] greedy(long first) {
            List<PromptRequest> requests = LongStream.rangeClosed(first, first + newest)
                    .mapToObj(series::greedy)
                    .flatMap(List::stream)
                    .toList();
            return sampler.sample(requests, weights(newest), newest).stream()
                    .flatMapToDouble(
                            answer -> DoubleStream.generate(answer::getReward).limit(GROUP))
                    .toArray();
        }

        /** Old log-probs, and the whole distributions of the old and the proximal policy. */
        private void addOld(StageFacts.Builder to, StageFacts facts, SequenceBatch sequences) {
            TokenBatch tokens = facts.tokens();
            int vocabulary = MODEL.vocabSize();
            float[] old = new float[tokens.tokenCount()];
            float[] before = new float[old.length * vocabulary];
            EntryScores of = null;
            for (long version = 0; version <= newest; version++) {
                of = scoring.scoreEntries(
                        weights(version),
                        sequences,
                        temperatures(sequences),
                        everyToken(sequences, vocabulary),
                        vocabulary);
                for (int s = 0; s < tokens.sequenceCount(); s++) {
                    for (var span : facts.versions().spans(s)) {
                        if (span.version() == version) {
                            int from = tokens.start(s) + span.start();
                            int length = span.end() - span.start();
                            System.arraycopy(of.scores().logProbs(), from, old, from, length);
                            System.arraycopy(
                                    of.logProbs(), from * vocabulary, before, from * vocabulary, length * vocabulary);
                        }
                    }
                }
            }
            float[] proximal = Objects.requireNonNull(of).logProbs();
            to.vector(StageInput.OLD, old).distributions(new FullDistributions(vocabulary, before, proximal));
        }

        private static int[][] everyToken(SequenceBatch sequences, int vocabulary) {
            int[][] entries = new int[sequences.sequenceCount()][];
            for (int s = 0; s < entries.length; s++) {
                int scored = sequences.length(s) - sequences.firstScored(s);
                entries[s] = IntStream.range(0, scored * vocabulary)
                        .map(i -> i % vocabulary)
                        .toArray();
            }
            return entries;
        }

        @Override
        public void close() {
            norms.close();
            scoring.close();
            sampler.close();
        }
    }
}
