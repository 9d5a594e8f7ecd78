package dev.millrace.experiments;

import dev.millrace.api.environment.Task;
import dev.millrace.generator.environment.IncPrompts;
import dev.millrace.generator.staleness.PromptRequests;
import dev.millrace.generator.staleness.SamplingConfig;
import dev.millrace.schemas.PromptRequest;
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
        PromptRequests asked =
                new PromptRequests(run, task, SamplingConfig.defaults().withSeed(ofSeed), false);
        return LongStream.range(first, first + count)
                .mapToObj(ordinal ->
                        asked.of(name + "-" + ordinal, ordinal, task.prompts().prompt(ofSeed, ordinal), samples, 0, 0))
                .toList();
    }
}
