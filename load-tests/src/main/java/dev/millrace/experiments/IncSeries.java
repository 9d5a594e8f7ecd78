package dev.millrace.experiments;

import dev.millrace.api.environment.Prompt;
import dev.millrace.api.environment.Task;
import dev.millrace.generator.environment.IncPrompts;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.SamplingParameters;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.run.RunIdentity;
import java.util.List;
import java.util.stream.LongStream;

/** The requests of an experiment over the task {@code inc}: a function of seed and ordinal. Immutable. */
final class IncSeries {
    /** Evaluation prompts are of another series than any seed's training prompts. */
    private static final long EVALUATION_SEED = Long.MIN_VALUE;

    private final RunIdentity run;
    private final StalenessSettings settings;
    private final long seed;
    private final Task task;

    IncSeries(RunIdentity run, StalenessSettings settings, long seed) {
        this.run = run;
        this.settings = settings;
        this.seed = seed;
        this.task = new IncPrompts(settings.digits()).task();
    }

    Task task() {
        return task;
    }

    /** The requests of a batch. */
    List<PromptRequest> batch(long batchId) {
        return requests(seed, "train", batchId * settings.groups(), settings.groups(), settings.groupSize());
    }

    /** The requests of every evaluation. */
    List<PromptRequest> evaluation() {
        return requests(EVALUATION_SEED, "evaluate", 0, settings.evaluationPrompts(), 1);
    }

    private List<PromptRequest> requests(long ofSeed, String name, long first, int count, int samples) {
        return LongStream.range(first, first + count)
                .mapToObj(ordinal -> {
                    Prompt prompt = task.prompts().prompt(ofSeed, ordinal);
                    return PromptRequest.newBuilder()
                            .setRunId(run.runId())
                            .setEpoch(run.epoch())
                            .setGroupId(name + "-" + ordinal)
                            .setOrdinal(ordinal)
                            .setEnvironment(task.environment().name())
                            .setEnvironmentState(prompt.environmentState())
                            .setPromptTokens(PackedInts.of(prompt.tokens()))
                            .setSamples(samples)
                            .setSampling(new SamplingParameters(
                                    1.0, 0, 1.0, task.responseTokens(), ofSeed, false, 0, 0.0, false))
                            .setTokenizerHash(task.tokenizer().hash())
                            .setAdmittedVersion(0)
                            .setReleasedAtMs(0)
                            .build();
                })
                .toList();
    }
}
