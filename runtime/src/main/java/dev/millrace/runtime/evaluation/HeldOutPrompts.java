package dev.millrace.runtime.evaluation;

import dev.millrace.api.environment.Prompt;
import dev.millrace.api.environment.PromptDataset;
import dev.millrace.api.environment.Task;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.SamplingParameters;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.run.RunIdentity;
import java.util.List;
import java.util.stream.LongStream;

/**
 * Requests for prompts that a run is never trained on: those that its task holds out, or else those of another seed. Asked for twice, they
 * are the same, draws included.
 */
public final class HeldOutPrompts {
    private final RunIdentity run;
    private final MillraceConfig config;
    private final Task task;

    public HeldOutPrompts(RunIdentity run, MillraceConfig config) {
        this.run = run;
        this.config = config;
        this.task = config.task().task();
    }

    /**
     * The first requests of a series.
     *
     * @param seed of prompts and draws
     * @param name of the series, which begins the names of its groups
     * @param samples of each
     */
    public List<PromptRequest> requests(long seed, String name, int count, int samples) {
        var sampling = config.admission().sampling();
        int maxTokens = sampling.maxTokens() == 0 ? task.responseTokens() : sampling.maxTokens();
        PromptDataset prompts = task.heldOut().orElse(task.prompts());
        return LongStream.range(0, count)
                .mapToObj(ordinal -> {
                    Prompt prompt = prompts.prompt(seed, ordinal);
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
                                    sampling.temperature(),
                                    sampling.topK(),
                                    sampling.topP(),
                                    maxTokens,
                                    seed,
                                    sampling.keepSamplingMask(),
                                    sampling.topLogProbs(),
                                    sampling.minP(),
                                    false))
                            .setTokenizerHash(task.tokenizer().hash())
                            .setAdmittedVersion(0)
                            .setReleasedAtMs(0)
                            .build();
                })
                .toList();
    }
}
