package dev.millrace.generator.staleness;

import dev.millrace.api.environment.Prompt;
import dev.millrace.api.environment.Task;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.SamplingParameters;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.run.RunIdentity;
import java.time.Clock;

/** Makes requests: each from the task and the name of its group alone, so that the same name asks for the same again. */
final class PromptRequests {
    private final RunIdentity run;
    private final Task task;
    private final long taskSeed;
    private final SamplingParameters sampling;
    private final Clock clock;

    /**
     * @param config of a length of 0 takes the task's
     * @param recordsRouting whether rollouts are to say through which experts their tokens went
     */
    PromptRequests(
            RunIdentity run, Task task, long taskSeed, SamplingConfig config, boolean recordsRouting, Clock clock) {
        this.run = run;
        this.task = task;
        this.taskSeed = taskSeed;
        this.sampling = samplingOf(config, recordsRouting, task);
        this.clock = clock;
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

    /** @param size samples of the group */
    PromptRequest of(RequestName name, int size, long admittedVersion) {
        Prompt prompt = task.prompts().prompt(taskSeed, name.prompt());
        return PromptRequest.newBuilder()
                .setRunId(run.runId())
                .setEpoch(run.epoch())
                .setGroupId(name.groupId())
                .setOrdinal(name.ordinal())
                .setEnvironment(task.environment().name())
                .setEnvironmentState(prompt.environmentState())
                .setPromptTokens(PackedInts.of(prompt.tokens()))
                .setSamples(size)
                .setSampling(sampling)
                .setTokenizerHash(task.tokenizer().hash())
                .setAdmittedVersion(admittedVersion)
                .setReleasedAtMs(clock.millis())
                .build();
    }
}
