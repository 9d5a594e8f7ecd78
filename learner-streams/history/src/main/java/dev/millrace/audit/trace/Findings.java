package dev.millrace.audit.trace;

import dev.millrace.log.deadletter.RedriveMark;
import dev.millrace.log.scan.TopicScan;
import dev.millrace.schemas.Outcome;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.Reward;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Score;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.run.RunTopics;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.stream.LongStream;

/** What a search has found of a group so far, and what of it has yet to be told: by that the search knows where to stop. */
final class Findings {
    private final RunTopics topics;
    private final List<Found<Rollout>> rollouts = new ArrayList<>();
    private final List<Found<Score>> scores = new ArrayList<>();
    private final List<Found<Reward>> rewards = new ArrayList<>();
    private final List<Found<Trajectory>> trajectories = new ArrayList<>();
    private final List<FoundEntry> entries = new ArrayList<>();
    private final List<Found<TrainingStep>> steps = new ArrayList<>();
    private final List<Found<Outcome>> outcomes = new ArrayList<>();
    /** Places of records that say word for word what another one said before. */
    private final List<String> copies = new ArrayList<>();

    private final List<DeadLetter> letters = new ArrayList<>();
    /** By the place of a letter, where its record was redriven to. */
    private final Map<String, Long> marks = new HashMap<>();

    Findings(RunTopics topics) {
        this.topics = topics;
    }

    void rollout(Found<Rollout> rollout) {
        rollouts.add(rollout);
    }

    void score(Found<Score> score) {
        scores.add(score);
    }

    void reward(Found<Reward> reward) {
        rewards.add(reward);
    }

    void trajectory(Found<Trajectory> trajectory) {
        trajectories.add(trajectory);
    }

    void entry(FoundEntry entry) {
        if (entries.stream()
                .anyMatch(
                        known -> known.index() == entry.index() && known.batch().isCopiedBy(entry.batch()))) {
            copy(entry.batch());
        } else {
            entries.add(entry);
        }
    }

    void step(Found<TrainingStep> step) {
        if (steps.stream().anyMatch(known -> known.isCopiedBy(step))) {
            copy(step);
        } else {
            steps.add(step);
        }
    }

    void outcome(Found<Outcome> outcome) {
        if (outcomes.stream().anyMatch(known -> known.isCopiedBy(outcome))) {
            copy(outcome);
        } else {
            outcomes.add(outcome);
        }
    }

    private void copy(Found<?> record) {
        if (!copies.contains(record.place())) { // a batch has several entries
            copies.add(record.place());
        }
    }

    void letter(DeadLetter letter) {
        letters.add(letter);
    }

    void mark(RedriveMark mark) {
        marks.put(RedriveMark.place(mark.letterPartition(), mark.letterOffset()), mark.newOffset());
    }

    List<Found<Trajectory>> trajectories() {
        return trajectories;
    }

    List<FoundEntry> entries() {
        return entries;
    }

    List<DeadLetter> letters() {
        return letters;
    }

    /** Where a letter's record was redriven to; -1 if it was not. */
    long newOffset(DeadLetter letter) {
        return marks.getOrDefault(RedriveMark.place(letter.partition(), letter.offset()), -1L);
    }

    /** Whether there is neither a rollout nor a letter; all other findings depend on these. */
    boolean isEmpty() {
        return rollouts.isEmpty() && letters.isEmpty();
    }

    boolean hasRollouts() {
        return !rollouts.isEmpty();
    }

    boolean hasRollout(int partition, long offset) {
        return rollouts.stream().anyMatch(found -> found.isAt(partition, offset));
    }

    boolean hasTrajectory(int partition, long offset) {
        return trajectories.stream().anyMatch(found -> found.isAt(partition, offset));
    }

    boolean hasScore(String topic, int partition, long offset) {
        return scores.stream().anyMatch(found -> found.topic().equals(topic) && found.isAt(partition, offset));
    }

    /** Whether every record of a rollout is in a batch, dropped or refused. */
    boolean allDecided() {
        return rollouts.stream()
                .allMatch(rollout -> isRefused(rollout)
                        || entries.stream()
                                .anyMatch(e -> rollout.isAt(
                                        e.entry().getRolloutPartition(),
                                        e.entry().getRolloutOffset()))
                        || outcomes.stream()
                                .anyMatch(o -> rollout.isAt(
                                        o.value().getSource().getPartition(),
                                        o.value().getSource().getOffset())));
    }

    private boolean isRefused(Found<Rollout> rollout) {
        return letters.stream()
                .anyMatch(letter -> letter.sourceTopic().equals(topics.rollouts())
                        && rollout.isAt(letter.sourcePartition(), letter.sourceOffset()));
    }

    boolean allJoined() {
        return rollouts.stream().allMatch(this::isJoined);
    }

    boolean allJoinedOrRefused() {
        return rollouts.stream().allMatch(rollout -> isJoined(rollout) || isRefused(rollout));
    }

    private boolean isJoined(Found<Rollout> rollout) {
        return trajectories.stream()
                .map(found -> found.value().getRolloutSource())
                .anyMatch(source -> rollout.isAt(source.getPartition(), source.getOffset()));
    }

    boolean allScored() {
        return rollouts.stream().allMatch(this::isScored);
    }

    private boolean isScored(Found<Rollout> rollout) {
        return scores.stream()
                .filter(found -> found.topic().equals(topics.scores()))
                .map(found -> found.value().getRolloutSource())
                .anyMatch(source -> rollout.isAt(source.getPartition(), source.getOffset()));
    }

    OptionalLong firstRolloutMs() {
        return rollouts.stream().mapToLong(Found::timestampMs).min();
    }

    OptionalLong lastOutcomeMs() {
        return outcomes.stream().mapToLong(Found::timestampMs).max();
    }

    /** When the last batch or outcome was written; empty if there is neither. */
    OptionalLong lastDecidedMs() {
        return LongStream.concat(
                        entries.stream().mapToLong(found -> found.batch().timestampMs()),
                        outcomes.stream().mapToLong(Found::timestampMs))
                .max();
    }

    /** All of it, rollouts in the order of their samples. */
    GroupTrace trace(String groupId, Optional<Found<PromptRequest>> prompt, String newestGroup, TopicScan scan) {
        rollouts.sort(
                Comparator.comparingInt((Found<Rollout> found) -> found.value().getSampleIndex())
                        .thenComparingLong(Found::offset));
        return new GroupTrace(
                groupId,
                prompt,
                rollouts,
                scores,
                rewards,
                trajectories,
                entries,
                steps,
                outcomes,
                letters.stream()
                        .map(letter -> new FoundDeadLetter(letter, newOffset(letter)))
                        .toList(),
                copies,
                newestGroup,
                scan.records(),
                scan.bytes());
    }
}
