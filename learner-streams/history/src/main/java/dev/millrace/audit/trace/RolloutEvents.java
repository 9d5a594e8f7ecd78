package dev.millrace.audit.trace;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.api.tokenizer.Tokenizer;
import dev.millrace.audit.trace.FoundEntry.FoundDeadLetter;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.LogProbVector;
import dev.millrace.schemas.Outcome;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.Reward;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Score;
import dev.millrace.schemas.StepEntry;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.packed.PackedMask;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.stream.Collectors;

/** Events of one rollout in order of time. */
public final class RolloutEvents {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final GroupTrace trace;
    private final String prefix;
    private final Optional<Tokenizer> tokenizer;
    private final List<RolloutEvent> events = new ArrayList<>();

    /**
     * @param trace of this rollout only
     * @param tokenizer decodes tokens; empty if there is none
     */
    public RolloutEvents(GroupTrace trace, String prefix, Optional<Tokenizer> tokenizer) {
        this.tokenizer = tokenizer;
        this.trace = trace;
        this.prefix = prefix;
    }

    public List<RolloutEvent> inOrder() {
        trace.prompt().ifPresent(this::released);
        trace.inputs().rollouts().forEach(this::sampled);
        trace.inputs().scores().forEach(this::scored);
        trace.inputs().rewards().forEach(this::rewarded);
        trace.inputs().trajectories().forEach(this::joined);
        trace.decisions().entries().forEach(this::batched);
        trace.decisions().outcomes().forEach(this::dropped);
        trace.decisions().letters().forEach(this::refused);
        events.sort(Comparator.comparingLong(RolloutEvent::timeMs)); // stable sort: equal times stay in pipeline order
        return events;
    }

    private String place(Found<?> found) {
        return found.place().substring(found.place().startsWith(prefix) ? prefix.length() : 0);
    }

    private void add(long timeMs, String what, List<String> details, String place, ObjectNode data) {
        data.put("event", what).put("time_ms", timeMs).put("place", place);
        events.add(new RolloutEvent(timeMs, what, details, place, data));
    }

    private void released(Found<PromptRequest> found) {
        PromptRequest prompt = found.value();
        add(
                prompt.getReleasedAtMs(),
                "prompt released",
                List.of("at version " + prompt.getAdmittedVersion() + ": " + prompt.getSamples() + " samples of '"
                        + prompt.getEnvironment() + "', " + PackedInts.length(prompt.getPromptTokens())
                        + " prompt tokens"),
                place(found),
                JSON.createObjectNode()
                        .put("admitted_version", prompt.getAdmittedVersion())
                        .put("samples", prompt.getSamples())
                        .put("ordinal", prompt.getOrdinal()));
    }

    private void sampled(Found<Rollout> found) {
        Rollout rollout = found.value();
        int tokens = rollout.getMask().remaining(); // another system's records may have no token ids
        int trainable = PackedMask.count(rollout.getMask());
        ObjectNode data = JSON.createObjectNode()
                .put("generator", rollout.getGeneratorId())
                .put("tokens", tokens)
                .put("policy_tokens", trainable)
                .put("started_at_ms", rollout.getStartedAtMs())
                .put("finish_reason", rollout.getFinishReason().name())
                .put("reward", rollout.getReward())
                .put("epoch", rollout.getEpoch());
        if (rollout.getError() != null) {
            data.put("error", rollout.getError());
        }
        spans(data, rollout.getVersionSpans());
        List<String> details = new ArrayList<>();
        long tookMs = rollout.getFinishedAtMs() - rollout.getStartedAtMs();
        details.add("by " + rollout.getGeneratorId() + (tookMs == 0 ? "" : " in " + tookMs + " ms") + ": " + tokens
                + " tokens, " + trainable + " of the policy, by "
                + spansText(rollout.getVersionSpans()));
        details.add("ended by " + rollout.getFinishReason()
                + (rollout.getError() == null ? "" : " (" + rollout.getError() + ")") + ", reward "
                + number(rollout.getReward()));
        tokenizer.ifPresent(words -> {
            String prompt = words.decode(PackedInts.toArray(rollout.getPromptTokens()));
            String response = words.decode(PackedInts.toArray(rollout.getResponseTokens()));
            data.put("prompt_text", prompt).put("response_text", response);
            details.add("prompt: " + JSON.getNodeFactory().textNode(prompt));
            details.add("response: " + JSON.getNodeFactory().textNode(response));
        });
        add(rollout.getFinishedAtMs(), "sampled", details, place(found), data);
    }

    private static void spans(ObjectNode data, List<VersionSpan> spans) {
        var array = data.putArray("version_spans");
        spans.forEach(span -> array.addObject()
                .put("version", span.getVersion())
                .put("start", span.getStart())
                .put("end", span.getEnd()));
    }

    private static String spansText(List<VersionSpan> spans) {
        return (spans.size() == 1 ? "version " : "versions ")
                + spans.stream()
                        .map(span -> span.getVersion()
                                + (spans.size() == 1 ? "" : " [" + span.getStart() + "," + span.getEnd() + ")"))
                        .collect(Collectors.joining(", "));
    }

    private void scored(Found<Score> found) {
        Score score = found.value();
        ObjectNode data =
                JSON.createObjectNode().put("scorer", score.getScorerId()).put("unavailable", score.getUnavailable());
        var vectors = data.putArray("vectors");
        for (LogProbVector vector : score.getVectors()) {
            spans(vectors.addObject().put("policy", vector.getPolicy().name()), vector.getVersionSpans());
        }
        String what = score.getVectors().stream()
                .map(vector -> vector.getPolicy().name().toLowerCase(Locale.ROOT) + " by "
                        + spansText(vector.getVersionSpans()))
                .collect(Collectors.joining("; "));
        add(
                score.getScoredAtMs(),
                "scored",
                List.of("by " + score.getScorerId() + (what.isEmpty() ? "" : ": " + what)
                        + (score.getUnavailable() == null ? "" : "; unavailable: " + score.getUnavailable())),
                place(found),
                data);
    }

    private void rewarded(Found<Reward> found) {
        Reward reward = found.value();
        add(
                reward.getScoredAtMs(),
                "rewarded",
                List.of("by " + reward.getRewarderId() + ": "
                        + (reward.getUnavailable() == null
                                ? number(reward.getReward())
                                : "unavailable: " + reward.getUnavailable())),
                place(found),
                JSON.createObjectNode()
                        .put("rewarder", reward.getRewarderId())
                        .put("reward", reward.getReward())
                        .put("unavailable", reward.getUnavailable()));
    }

    private void joined(Found<Trajectory> found) {
        Trajectory trajectory = found.value();
        ObjectNode data = JSON.createObjectNode().put("proximal_version", trajectory.getProximalVersion());
        List<String> details = new ArrayList<>();
        details.add("with its score; proximal is version " + trajectory.getProximalVersion());
        if (trajectory.getOldLogProbs() == null) {
            details.add("without old log-probs");
            data.put("without_old", true);
        }
        add(found.timestampMs(), "joined", details, place(found), data);
    }

    private static Optional<String> weights(BatchEntry entry, Trajectory trajectory, ObjectNode data) {
        if (entry.getWeights() == null || entry.getTrainedTokens() == 0) {
            return Optional.empty(); // the stages report the rule's effect; the learner recomputes them
        }
        float[] weights = PackedFloats.toArray(entry.getWeights());
        ByteBuffer mask = entry.getMask() == null ? trajectory.getMask() : entry.getMask();
        double sum = 0;
        double least = Double.POSITIVE_INFINITY;
        double most = Double.NEGATIVE_INFINITY;
        int count = 0;
        for (int t = 0; t < weights.length; t++) {
            if (PackedMask.get(mask, t) == 1) {
                sum += weights[t];
                least = Math.min(least, weights[t]);
                most = Math.max(most, weights[t]);
                count++;
            }
        }
        if (count == 0) {
            return Optional.empty();
        }
        data.putObject("importance_weights")
                .put("least", least)
                .put("mean", sum / count)
                .put("most", most);
        return Optional.of(
                "importance weights " + number(least) + " to " + number(most) + ", mean " + number(sum / count));
    }

    private void batched(FoundEntry found) {
        BatchEntry entry = found.entry();
        LearnerBatch batch = found.batch().value();
        Optional<Trajectory> trajectory = trace.inputs().trajectories().stream()
                .filter(it -> it.isAt(entry.getPartition(), entry.getOffset()))
                .map(Found::value)
                .findFirst();
        ObjectNode data = JSON.createObjectNode()
                .put("batch_id", batch.getBatchId())
                .put("assembled_version", batch.getAssembledVersion())
                .put("advantage", entry.getAdvantage())
                .put("trained_tokens", entry.getTrainedTokens())
                .put("masked_by", entry.getMaskedBy())
                .put("oldest_version", entry.getOldestVersion());
        List<String> details = new ArrayList<>();
        details.add("batch " + batch.getBatchId() + ", assembled at version " + batch.getAssembledVersion()
                + "; advantage " + number(entry.getAdvantage()));
        long staleness = expectedVersion(batch) - entry.getOldestVersion();
        if (trajectory.isPresent()) {
            long inFlight = trajectory.get().getProximalVersion() - entry.getOldestVersion();
            data.put("staleness_in_flight", inFlight).put("staleness_in_queue", staleness - inFlight);
            details.add("staleness expected at its step " + staleness + ": " + inFlight
                    + " in flight until it was scored, " + (staleness - inFlight) + " in the queue after");
        } else {
            details.add("staleness expected at its step " + staleness);
        }
        data.put("staleness", staleness);
        trajectory.flatMap(it -> weights(entry, it, data)).ifPresent(details::add);
        details.add(
                entry.getTrainedTokens() > 0
                        ? entry.getTrainedTokens() + " tokens left to train on"
                        : "masked"
                                + (entry.getMaskedBy() == null
                                        ? ": it had no token to train on"
                                        : " by " + entry.getMaskedBy()));
        add(found.batch().timestampMs(), "batched", details, place(found.batch()), data);
        trace.stepOf(found).ifPresent(step -> trained(step, trace.lastWord(found, step)));
    }

    private static long expectedVersion(LearnerBatch batch) {
        return batch.getExpectedVersion() < 0 ? batch.getAssembledVersion() : batch.getExpectedVersion();
    }

    private void trained(TrainingStep step, StepEntry word) {
        Found<TrainingStep> found = trace.decisions().steps().stream()
                .filter(it -> it.value().equals(step))
                .findFirst()
                .orElseThrow();
        List<String> details = new ArrayList<>();
        details.add("batch " + step.getBatchId()
                + (step.getStarved()
                        ? " was starved and left version " + step.getVersion() + " as it was: "
                        : " made version " + step.getVersion() + " with ")
                + (step.getRolloutsTrained() + step.getRolloutsMasked()) + " rollouts"
                + (step.getLearningRate() == 0 && step.getWeightsSha256().isEmpty()
                        ? "" // another system's trainer does not report it
                        : ", learning rate " + number(step.getLearningRate())));
        if (step.getEntries() != null) {
            details.add("the learner decided again: "
                    + (word.getTrainedTokens() > 0
                            ? word.getTrainedTokens() + " tokens trained on"
                            : "masked" + (word.getMaskedBy() == null ? "" : " by " + word.getMaskedBy())));
        }
        add(
                step.getFinishedAtMs(),
                word.getTrainedTokens() > 0 ? "trained" : "masked",
                details,
                place(found),
                JSON.createObjectNode()
                        .put("batch_id", step.getBatchId())
                        .put("version", step.getVersion())
                        .put("trained_tokens", word.getTrainedTokens())
                        .put("masked_by", word.getMaskedBy()));
    }

    private void dropped(Found<Outcome> found) {
        Outcome outcome = found.value();
        boolean itself = outcome.getSource().getTopic().equals(prefix + "rollouts");
        add(
                found.timestampMs(),
                itself ? "dropped" : "its score left",
                List.of(outcome.getReason() + " (" + outcome.getStage() + "): " + outcome.getDetail()),
                place(found),
                JSON.createObjectNode()
                        .put("reason", outcome.getReason())
                        .put("stage", outcome.getStage())
                        .put("detail", outcome.getDetail())
                        .put(
                                "source",
                                outcome.getSource().getTopic() + "-"
                                        + outcome.getSource().getPartition() + "@"
                                        + outcome.getSource().getOffset()));
    }

    private void refused(FoundDeadLetter found) {
        var letter = found.letter();
        List<String> details = new ArrayList<>();
        String source = letter.source().substring(letter.source().startsWith(prefix) ? prefix.length() : 0);
        details.add(source + " for " + letter.reason() + (letter.field().isEmpty() ? "" : " of " + letter.field())
                + ": " + letter.message());
        if (found.newOffset() >= 0) {
            details.add("redriven since to " + source.substring(0, source.indexOf('@')) + "@" + found.newOffset());
        }
        add(
                letter.writtenAtMs(),
                "refused",
                details,
                "dead-letters-" + letter.partition() + "@" + letter.offset(),
                JSON.createObjectNode()
                        .put("reason", letter.reason())
                        .put("field", letter.field())
                        .put("message", letter.message())
                        .put("source", source)
                        .put("redriven_offset", found.newOffset()));
    }

    public static String number(double value) {
        if (value == Math.rint(value) && Math.abs(value) < 1e6) {
            return Long.toString((long) value);
        }
        return Math.abs(value) >= 1e-3 && Math.abs(value) < 1e6
                ? String.format(Locale.ROOT, "%.4f", value)
                : String.format(Locale.ROOT, "%.3g", value);
    }

    /**
     * An event of a rollout.
     *
     * @param timeMs Unix milliseconds
     * @param place of the record, without prefix
     */
    public record RolloutEvent(long timeMs, String what, List<String> details, String place, ObjectNode data) {}
}
