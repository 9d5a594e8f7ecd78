package dev.millrace.runtime.evaluation;

import dev.millrace.api.environment.PromptDataset;
import dev.millrace.api.environment.Task;
import dev.millrace.api.environment.TaskSettings;
import dev.millrace.generator.environment.text.TextTask;
import dev.millrace.generator.staleness.PromptRequests;
import dev.millrace.log.ContentTopic;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.run.RunIdentity;
import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.OptionalInt;
import java.util.stream.LongStream;

/**
 * Requests for held-out prompts: those that the task holds out, or else those of another seed. A function of the seeds,
 * draws included.
 */
public final class HeldOutPrompts {
    private final RunIdentity run;
    private final MillraceConfig config;
    private final Task task;
    private final OptionalInt known;

    public HeldOutPrompts(RunIdentity run, MillraceConfig config) {
        this(run, config, config.task());
    }

    /** @param held the run's task; its held-out prompts may differ from the run's */
    public HeldOutPrompts(RunIdentity run, MillraceConfig config, TaskSettings held) {
        this.run = run;
        this.config = config;
        this.task = held.task();
        this.known = held instanceof TextTask text && text.files().evalRows() > 0
                ? OptionalInt.of(text.files().evalRows())
                : OptionalInt.empty();
    }

    /** Counts the distinct prompts among the wanted number. */
    public int count(int wanted) {
        return Math.min(wanted, known.orElse(wanted));
    }

    /**
     * The first requests of a series.
     *
     * @param seed of prompts and draws
     * @param name of the series, which begins the names of its groups
     * @param samples of each
     */
    public List<PromptRequest> requests(long seed, String name, int count, int samples) {
        return requests(seed, seed, name, count, samples);
    }

    /**
     * As {@link #requests(long, String, int, int)}, whose prompts and draws are of different seeds.
     *
     * @param draws seed of draws
     */
    public List<PromptRequest> requests(long seed, long draws, String name, int count, int samples) {
        PromptRequests asked =
                new PromptRequests(run, task, config.admission().sampling().withSeed(draws), false);
        PromptDataset prompts = task.heldOut().orElse(task.prompts());
        return LongStream.range(0, count)
                .mapToObj(ordinal ->
                        asked.of(name + "-" + ordinal, ordinal, prompts.prompt(seed, ordinal), samples, 0, 0))
                .toList();
    }

    /**
     * SHA-256 over prompts in their order: environment, tokens and environment state, each prefixed with its length.
     */
    public static String sha256(List<PromptRequest> requests) {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        for (PromptRequest request : requests) {
            part(all, request.getEnvironment().getBytes(StandardCharsets.UTF_8));
            byte[] tokens = new byte[request.getPromptTokens().remaining()];
            request.getPromptTokens().duplicate().get(tokens);
            part(all, tokens);
            part(all, request.getEnvironmentState().getBytes(StandardCharsets.UTF_8));
        }
        return ContentTopic.hash(all.toByteArray());
    }

    /** Prefixes the length, so that parts cannot be confused. */
    private static void part(ByteArrayOutputStream all, byte[] bytes) {
        all.writeBytes(ByteBuffer.allocate(Integer.BYTES).putInt(bytes.length).array());
        all.writeBytes(bytes);
    }
}
