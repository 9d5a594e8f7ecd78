package dev.millrace.generator.staleness;

import dev.millrace.api.environment.Prompt;
import dev.millrace.api.environment.Task;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.SamplingParameters;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.run.RunIdentity;

/** Makes requests: each from the task and the name of its group alone, so that the same name asks for the same again. Immutable. */
public final class PromptRequests {
    private final RunIdentity run;
    private final Task task;
    private final SamplingParameters sampling;

    /**
     * @param config of a length of 0 takes the task's
     * @param recordsRouting whether rollouts are to say through which experts their tokens went
     */
    public PromptRequests(RunIdentity run, Task task, SamplingConfig config, boolean recordsRouting) {
        this.run = run;
        this.task = task;
        this.sampling = samplingOf(config, recordsRouting, task);
    }

    private static SamplingParameters samplingOf(SamplingConfig config, boolean recordsRouting, Task task) {
        int maxTokens = config.maxTokens() == 0 ? task.responseTokens() : config.maxTokens();
        return SamplingParameters.newBuilder()
                .setTemperature(config.temperature())
                .setTopK(config.topK())
                .setTopP(config.topP())
                .setMinP(config.minP())
                .setMaxTokens(maxTokens)
                .setSeed(config.seed())
                .setKeepSamplingMask(config.keepSamplingMask())
                .setTopLogProbs(config.topLogProbs())
                .setRecordRouting(recordsRouting)
                .build();
    }

    /** The request of a group. */
    public PromptRequest of(
            String groupId, long ordinal, Prompt prompt, int samples, long admittedVersion, long releasedAtMs) {
        return PromptRequest.newBuilder()
                .setRunId(run.runId())
                .setEpoch(run.epoch())
                .setGroupId(groupId)
                .setOrdinal(ordinal)
                .setEnvironment(task.environment().name())
                .setEnvironmentState(prompt.environmentState())
                .setPromptTokens(PackedInts.of(prompt.tokens()))
                .setSamples(samples)
                .setSampling(sampling)
                .setTokenizerHash(task.tokenizer().hash())
                .setAdmittedVersion(admittedVersion)
                .setReleasedAtMs(releasedAtMs)
                .build();
    }
}
