package dev.millrace.generator.sampling;

import dev.millrace.generator.sampling.RolloutWriter.Finished;
import dev.millrace.generator.sampling.RolloutWriter.Work;
import dev.millrace.schemas.Serving;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.OptionalLong;
import java.util.Set;
import java.util.function.Predicate;
import org.apache.kafka.common.TopicPartition;
import org.jspecify.annotations.Nullable;

/**
 * Finished rollouts: those that wait for a reward, and those of the next transaction, with prompt offsets and serving
 * record. Confined to the sampling thread.
 */
final class FinishedRollouts {
    private static final int MAX_UNCOMMITTED_FILLINGS = 4;
    private static final int MAX_UNJUDGED_FILLINGS = 4;

    private final GeneratorConfig config;
    private final GeneratorMeters meters;
    private final RolloutWriter writer;
    private final PromptSource prompts;
    private final List<Finished> judging = new ArrayList<>(); // the verifier has not answered yet
    private List<Finished> judged = new ArrayList<>();
    private long committedAtMs;

    FinishedRollouts(GeneratorConfig config, GeneratorMeters meters, RolloutWriter writer, PromptSource prompts) {
        this.config = config;
        this.meters = meters;
        this.writer = writer;
        this.prompts = prompts;
    }

    void add(Finished over) {
        over.sequence().judge();
        judging.add(over);
    }

    int unjudged() {
        return judging.size();
    }

    /** Whether further ones may be begun: rewards are not too far behind. */
    boolean haveRoom() {
        return judging.size() < MAX_UNJUDGED_FILLINGS * config.slots();
    }

    boolean isEmpty() {
        return judging.isEmpty() && judged.isEmpty();
    }

    /** Those that are rewarded, or never will be, can be committed. */
    void takeJudged() {
        if (judging.isEmpty()) {
            return;
        }
        judging.removeIf(over -> {
            boolean isJudged = over.sequence().isJudged();
            if (isJudged) {
                judged.add(over);
                prompts.finished(over.sequence().prompt());
            }
            return isJudged;
        });
        meters.unjudged(judging.size());
    }

    /**
     * True if {@link #commit} is due; no commit is then in flight.
     *
     * @param isHeartbeatDue whether a serving record is due
     * @param isIdle whether nothing is left to sample, so waiting gains nothing
     */
    boolean areDue(boolean isHeartbeatDue, boolean isIdle) {
        boolean something = !judged.isEmpty() || prompts.hasRefused();
        if (judged.size() > MAX_UNCOMMITTED_FILLINGS * config.slots()) {
            settle(); // commits are slower than sampling: wait for one, so that memory stays bounded
        }
        boolean worthIt = isIdle || SamplingLoop.monotonicMs() - committedAtMs >= config.commitIntervalMs();
        boolean areDue = !writer.isBusy() && (isHeartbeatDue || something && worthIt);
        if (areDue) {
            settle();
        }
        return areDue;
    }

    /** Begins a transaction with all that is rewarded. */
    void commit(@Nullable Serving serving) {
        committedAtMs = SamplingLoop.monotonicMs();
        List<Finished> rollouts = judged;
        judged = new ArrayList<>();
        List<RefusedPrompt> refused = prompts.takeRefused();
        writer.submit(new Work(
                rollouts,
                refused,
                serving,
                prompts.takeOffsets(partitionsOf(rollouts, refused), writer.nextMark()),
                prompts.groupMetadata()));
    }

    /** Their offsets go along even where they stay as they are: by them it is found out whether the rest is committed. */
    private static Set<TopicPartition> partitionsOf(List<Finished> rollouts, List<RefusedPrompt> refused) {
        Set<TopicPartition> partitions = new HashSet<>();
        rollouts.forEach(rollout -> partitions.add(rollout.sequence().prompt().partition()));
        refused.forEach(prompt -> partitions.add(
                new TopicPartition(prompt.record().topic(), prompt.record().partition())));
        return partitions;
    }

    /** Ends the transaction under way; what the group did not take is to be committed again. */
    void settle() {
        writer.await(prompts::isCommitted).ifPresent(notWritten -> {
            List<Finished> again = new ArrayList<>(notWritten.rollouts());
            again.addAll(judged);
            judged = again;
            prompts.requeue(notWritten.refused(), notWritten.offsets().keySet());
        });
    }

    /** Commits what there is, and waits for that. */
    void write(@Nullable Serving serving) {
        settle();
        commit(serving);
        settle();
    }

    /** Those whose prompts came from these partitions are others' now. */
    void revoke(Set<TopicPartition> partitions) {
        judged.removeIf(over -> partitions.contains(over.sequence().prompt().partition()));
        giveUp(partitions::contains);
    }

    void cancelUnscored() {
        giveUp(every -> true);
    }

    private void giveUp(Predicate<TopicPartition> of) {
        judging.removeIf(over -> {
            boolean isGone = of.test(over.sequence().prompt().partition());
            if (isGone) {
                over.sequence().abandon();
            }
            return isGone;
        });
    }

    /** Oldest version of any token of one that waits for its reward; empty if there is none. */
    OptionalLong oldestUnjudged() {
        return judging.stream()
                .flatMapToLong(over -> over.sequence().spans().oldest().stream())
                .min();
    }
}
