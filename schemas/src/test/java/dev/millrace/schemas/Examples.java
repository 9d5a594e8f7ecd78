package dev.millrace.schemas;

import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.packed.PackedMask;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import org.apache.avro.specific.SpecificRecord;

/**
 * One example of each record, with every optional field set and text that is not ASCII.
 *
 * <p>{@link PinRecords} pins their bytes when a schema gets a new version.
 */
public final class Examples {
    private static final String RUN = "run-1";
    private static final long NOW_MS = 1_767_225_600_123L;
    private static final SamplingParameters SAMPLING =
            new SamplingParameters(0.7, 50, 0.95, 128, -42L, false, 0, 0.0, false);
    private static final LogCoordinates SOURCE = new LogCoordinates("millrace.rollouts", 3, 1L << 33);
    private static final List<VersionSpan> SPANS = List.of(new VersionSpan(6L, 0, 2), new VersionSpan(7L, 2, 3));
    private static final StageReport STAGE = new StageReport("token_tis", 640L, 12L, 64L, 5L, Map.of("threshold", 2.0));
    private static final EngineIdentity ENGINE = new EngineIdentity("vllm", "0.27.1", "bfloat16", "fp8");
    private static final TaskReference TASK = new TaskReference("inc – 17", Map.of("level", "drei"));
    private static final TurnDetails CALL = new TurnDetails(
            FinishReason.TOOL_CALLS,
            "suche",
            "no such tool – 4",
            NOW_MS,
            NOW_MS + 40,
            NOW_MS + 90,
            new TokenUsage(2, 1, 0));
    private static final Credit CREDIT = new Credit(
            PackedFloats.of(0f, 0f, 0.75f),
            PackedFloats.of(0.25f, 0f, 0.5f),
            PackedFloats.of(-0.5f, 0f, 1.5f),
            PackedFloats.of(-0.25f, 0f, 1.25f),
            PackedFloats.of(0.125f, 0f, 0.5f),
            0.25);
    private static final RecordedRouting ROUTING = new RecordedRouting(
            1,
            2,
            PackedMask.of((byte) 3, (byte) 0, (byte) -1, (byte) -1, (byte) 1, (byte) 127, (byte) 2, (byte) 1),
            PackedFloats.of(0.75f, 0.25f, 0f, 0f, 0.5f, 0.5f, 1f, 0f));
    private static final KeptSupport KEPT = new KeptSupport(PackedInts.of(3, 1), PackedInts.of(4, 9, 11, 2));
    private static final TopLogProbs TOP = new TopLogProbs(
            2,
            PackedInts.of(4, 9, 2, 70_000),
            PackedFloats.of(-0.5f, -1.5f, -0.125f, Float.NEGATIVE_INFINITY),
            PackedFloats.of(-1.75f, -2.25f));
    private static final ImageReference IMAGE = new ImageReference(blob("image/png", null, 480L, 640L), 1, 1);

    private Examples() {}

    /** All of them, one per kind of record. */
    public static List<SpecificRecord> all() {
        return List.of(
                runClaim(),
                promptRequest(),
                rollout(),
                score(),
                reward(),
                trajectory(),
                learnerBatch(),
                policyVersion(),
                weightChunk(),
                trainingStep(),
                serving(),
                outcome(),
                admission(),
                sessionEvent(),
                versionEvaluation());
    }

    public static RunClaim runClaim() {
        return new RunClaim(
                RUN,
                2,
                "default",
                NOW_MS,
                "run: {id: run-1}\n",
                new EpochParent(1, 9L, "sha256:00ff", "collapsed"),
                "lkc-1",
                Map.of("rollouts", "4L6g3nShT-eMCtK--X86sw"),
                Map.of("rollouts-0", 4711L));
    }

    public static PromptRequest promptRequest() {
        return new PromptRequest(
                RUN,
                2,
                "g-17",
                17L,
                "inc",
                "{\"answer\": \"二\"}",
                PackedInts.of(1, 15, -1),
                8,
                SAMPLING,
                "sha256:00ff",
                5L,
                NOW_MS,
                TASK,
                List.of(IMAGE));
    }

    public static Rollout rollout() {
        return new Rollout(
                RUN,
                2,
                "g-17/3",
                "g-17",
                17L,
                3,
                8,
                "generator-0",
                "guess",
                "sha256:00ff",
                PackedInts.of(1, 15),
                PackedInts.of(4, 70_000, 2),
                PackedMask.of((byte) 1, (byte) 0, (byte) 1),
                PackedFloats.of(-0.5f, 0f, -3.25f),
                LogProbDistribution.TRUNCATED,
                PackedFloats.of(-0.75f, 0f, -3.5f),
                SAMPLING,
                List.of(
                        new Turn(Speaker.POLICY, 0, 1, CALL),
                        new Turn(Speaker.ENVIRONMENT, 1, 2, null),
                        new Turn(Speaker.POLICY, 2, 3, null)),
                SPANS,
                0.8,
                Map.of("digits", 0.8),
                FinishReason.TIMEOUT,
                5L,
                NOW_MS,
                NOW_MS + 250,
                "no answer within 30 s – 4",
                new Sampler("default", "adapter-3", new Agent("löser", true), ENGINE),
                TASK,
                CREDIT,
                new SamplingTrace(
                        TOP,
                        KEPT,
                        new ExpertRouting(
                                blob("application/octet-stream", "U8", 4L, 12L, 2L),
                                blob("application/octet-stream", "F32", 4L, 12L, 2L)),
                        ROUTING),
                new Branch("g-17/2", 9, BranchReason.COMPACTION, 0.5),
                List.of(IMAGE));
    }

    public static Score score() {
        return new Score(
                RUN,
                2,
                "g-17/3",
                "g-17",
                "scorer-0",
                SOURCE,
                List.of(new LogProbVector(
                        PolicyRole.OLD,
                        SPANS,
                        PackedFloats.of(-0.5f, 0f, -3f),
                        PackedFloats.of(1f, 0.5f, 0.25f),
                        PackedFloats.of(0.5f, 0.75f, 1f),
                        TOP,
                        PackedFloats.of(0.25f, -1.5f, 2f))),
                "no vector under the newest version: it is no longer kept – 4",
                NOW_MS,
                ENGINE);
    }

    public static Reward reward() {
        return new Reward(
                RUN,
                2,
                "g-17/3",
                "g-17",
                "judge-0",
                SOURCE,
                0.8,
                Map.of("judge – ja", 0.8),
                "the judge gave up after 3 tries – 4",
                NOW_MS,
                CREDIT);
    }

    public static Trajectory trajectory() {
        return new Trajectory(
                RUN,
                2,
                "default",
                "g-17/3",
                "g-17",
                17L,
                3,
                8,
                SOURCE,
                new LogCoordinates("millrace.scores", 3, 12L),
                PackedInts.of(1, 15),
                PackedInts.of(4, 70_000, 2),
                PackedMask.of((byte) 1, (byte) 0, (byte) 1),
                0.7,
                SPANS,
                PackedFloats.of(-0.5f, 0f, -3.25f),
                PackedFloats.of(-0.5f, 0f, -3f),
                PackedFloats.of(-0.25f, 0f, -2f),
                8L,
                0.8,
                "ENVIRONMENT",
                NOW_MS,
                NOW_MS + 10,
                PackedFloats.of(-0.75f, 0f, -4f),
                0L,
                PackedFloats.of(-0.125f, 0f, -1f),
                Map.of("judge – ja", 0.8),
                new LogCoordinates("millrace.rewards", 3, 5L),
                new LogCoordinates("millrace.reference-scores", 3, 6L),
                new LogCoordinates("millrace.teacher-scores", 3, 7L),
                CREDIT,
                List.of(new Turn(Speaker.POLICY, 0, 3, CALL)),
                "inc – 17",
                KEPT,
                TOP,
                PackedFloats.of(1.5f, 0f, 0.5f),
                PackedFloats.of(0.25f, 0f, 0.75f),
                TOP,
                ROUTING,
                PackedFloats.of(0.25f, -1.5f, 2f));
    }

    public static LearnerBatch learnerBatch() {
        return new LearnerBatch(
                RUN,
                2,
                "default",
                9L,
                8L,
                9L,
                List.of(new BatchEntry(
                        "g-17/3",
                        "g-17",
                        0,
                        77L,
                        3,
                        1234567890123L,
                        0.8,
                        0.3,
                        6L,
                        0,
                        PackedMask.of((byte) 0, (byte) 0, (byte) 0),
                        "m2po",
                        CREDIT,
                        PackedFloats.of(0, 0, 0),
                        new RecordedBaseline("5e884898da280471", 0.625))),
                List.of(STAGE),
                0L,
                0.91,
                0.97,
                0.0123,
                0.954,
                1.5,
                2L,
                NOW_MS);
    }

    public static PolicyVersion policyVersion() {
        return new PolicyVersion(
                RUN,
                2,
                "default",
                9L,
                8L,
                9L,
                "{\"layers\": 2}",
                "sha256:00ff",
                location("weights"),
                location("optimizer-state"),
                9L,
                2304L,
                11_520L,
                NOW_MS,
                Map.of("length_guard.mean_tokens", 5.5),
                1,
                new AdapterBase(8, 16.0, List.of("q_proj", "down_proj"), 0L, "cd".repeat(32)));
    }

    public static WeightChunk weightChunk() {
        return new WeightChunk(
                RUN, 2, "default", 9L, "lm_head.weight", 1, 1L << 20, ByteBuffer.wrap(new byte[] {0, -128, 127, 1}));
    }

    public static TrainingStep trainingStep() {
        return new TrainingStep(
                RUN,
                2,
                "default",
                9L,
                10L,
                "ab".repeat(32),
                250,
                6,
                1250L,
                0.42,
                1.25,
                3L,
                0.88,
                0.0019,
                Map.of("loss", -0.125),
                NOW_MS,
                NOW_MS + 80,
                List.of(new StepEntry(5, null), new StepEntry(0, "m2po")),
                1.0,
                0.25,
                0.93,
                0.021,
                0.0123,
                1310L,
                false,
                2560L);
    }

    public static Serving serving() {
        return new Serving(
                RUN,
                2,
                "generator-0",
                ServerRole.GENERATOR,
                "default",
                9L,
                NOW_MS,
                NOW_MS + 1000,
                99_999L,
                8L,
                true,
                ENGINE,
                List.of(new ComparedLogProbs("generator-1", 4096L, 40.5, 1.25, -2048.5, 3000.75)),
                8L);
    }

    public static Outcome outcome() {
        return new Outcome(
                RUN, 2, "g-17/4", "g-17", "join", "unscored", "no score within 60000 ms", -1L, SOURCE, NOW_MS);
    }

    public static Admission admission() {
        return new Admission(
                RUN,
                2,
                new ReleasedGroup(
                        "2-17",
                        PackedMask.of((byte) 1, (byte) 0, (byte) 0),
                        PackedMask.of((byte) 0, (byte) 1, (byte) 0),
                        5L,
                        NOW_MS,
                        2,
                        3,
                        1L << 33),
                new AdmissionCounts(
                        18L, 144L, 96L, 9L, 512L, 8L, 11L, List.of(13L), List.of("7:1"), Map.of("x.outcomes-3", 77L)),
                new Quarantine("generator-3", NOW_MS, "refused-records", "64 of its records were refused"));
    }

    public static VersionEvaluation versionEvaluation() {
        return new VersionEvaluation(
                RUN,
                2,
                "default",
                40L,
                "sha256:00ff",
                "5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef",
                4,
                SAMPLING,
                0.5,
                List.of(new EvaluatedPrompt(4, 1, 1.25, 40L, 1), new EvaluatedPrompt(3, 3, 3.0, 12L, 0)),
                0.65625,
                0.25,
                0.875,
                List.of(new PassAtKEstimate(2, 0.75, 0.5, 1.0, 0.71875, 0.6875)),
                new BetaFit(0.5, 1.5),
                List.of(new DifficultyLengths(0.0, 0.25, 1, 4, 10.0, 0.25)),
                0.125,
                -1.25,
                1,
                3L,
                NOW_MS,
                NOW_MS + 900);
    }

    public static SessionEvent sessionEvent() {
        return new SessionEvent(
                RUN,
                2,
                "2-1729-3-k5",
                "g-17",
                3,
                "generator-0",
                "solver",
                new LogCoordinates("millrace.prompts", 2, 1L << 33),
                SessionEventKind.TURN,
                NOW_MS,
                new SessionTurn(
                        1,
                        0,
                        BranchReason.EDIT,
                        0,
                        2,
                        PackedInts.of(4, 70_000),
                        PackedInts.of(2, 9),
                        PackedFloats.of(-0.5f, -3.25f),
                        LogProbDistribution.TRUNCATED,
                        PackedFloats.of(-0.75f, -3.5f),
                        SAMPLING,
                        List.of(new VersionSpan(5L, 0, 2)),
                        new SamplingTrace(TOP, KEPT, null, null),
                        FinishReason.TOOL_CALLS,
                        NOW_MS,
                        NOW_MS + 1,
                        NOW_MS + 2,
                        NOW_MS + 3,
                        new TokenUsage(6, 2, 4),
                        "ä 二",
                        21,
                        "ab".repeat(32),
                        "cd".repeat(32)),
                1,
                FinishReason.FAILED,
                "the agent broke down");
    }

    private static TensorLocation location(String topic) {
        return new TensorLocation(
                "millrace." + topic,
                0,
                100L,
                104L,
                List.of(new TensorEntry(
                        "lm_head.weight",
                        "F32",
                        List.of(16L, 64L),
                        4096L,
                        1,
                        "cd".repeat(32),
                        TensorEncoding.DELTA,
                        2048L)),
                "ef".repeat(32),
                6L,
                "ab".repeat(32),
                0L,
                "file:///store/object");
    }

    private static BlobReference blob(String mediaType, String dtype, Long... shape) {
        return new BlobReference("ab".repeat(32), "s3://blobs/ä", mediaType, 96L, dtype, List.of(shape));
    }
}
