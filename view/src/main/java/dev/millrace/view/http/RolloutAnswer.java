package dev.millrace.view.http;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.api.tokenizer.Tokenizer;
import dev.millrace.audit.trace.Found;
import dev.millrace.audit.trace.FoundEntry;
import dev.millrace.audit.trace.GroupTrace;
import dev.millrace.audit.trace.RolloutEvents;
import dev.millrace.audit.trace.RolloutStatus;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LogProbVector;
import dev.millrace.schemas.PolicyRole;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.StepEntry;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.Turn;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.packed.PackedMask;
import dev.millrace.stages.StageReports;
import dev.millrace.view.follow.OpenRun;
import dev.millrace.view.index.RunIndex;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** Course of a rollout: every decision and token. */
public final class RolloutAnswer {
    private RolloutAnswer() {}

    public static Optional<ObjectNode> of(
            OpenRun run, RunIndex index, String rolloutId, Optional<Tokenizer> tokenizer) {
        return RolloutTrace.of(run, index, rolloutId).map(trace -> json(run, index, rolloutId, trace, tokenizer));
    }

    private static ObjectNode json(
            OpenRun run, RunIndex index, String rolloutId, GroupTrace trace, Optional<Tokenizer> tokenizer) {
        String prefix = run.recorded().topics().prefix();
        ObjectNode json =
                JsonNodeFactory.instance.objectNode().put("id", rolloutId).put("group", trace.groupId());
        RolloutStatus status =
                RolloutStatus.of(trace, prefix, run.recorded().run().epoch());
        json.put("fate", status.word()).put("detail", status.detail());
        ArrayNode events = json.putArray("events");
        new RolloutEvents(trace, prefix, tokenizer).inOrder().forEach(event -> {
            ArrayNode details = event.data().putArray("details");
            event.details().forEach(details::add);
            events.add(event.data());
        });
        ArrayNode stages = json.putArray("stages");
        trace.decisions().entries().stream().findFirst().ifPresent(entry -> {
            json.put("batch", entry.batchId());
            entry.batch().value().getStages().forEach(report -> stages.add(RedecidedBatch.json(report)));
            trace.stepOf(entry).ifPresent(step -> step(json, step, index));
        });
        siblings(json.putArray("siblings"), index, trace.groupId());
        List<Found<Rollout>> rollouts = trace.inputs().rollouts();
        if (!rollouts.isEmpty()) {
            tokens(json, rollouts.get(rollouts.size() - 1).value(), trace, tokenizer);
        }
        return json;
    }

    private static void step(ObjectNode json, TrainingStep step, RunIndex index) {
        ArrayNode anew = json.putArray("step_stages");
        StageReports.of(step).forEach(report -> anew.add(RedecidedBatch.json(report)));
        ObjectNode gradient = json.putObject("gradient");
        for (String name :
                List.of("grad_norm", "loss", "entropy", "step_scale", "clip_fraction", "approx_kl_behavior")) {
            Double value = step.getMetrics().get(name);
            if (value != null && Double.isFinite(value)) {
                gradient.put(name, value);
            }
        }
        gradient.put("learning_rate", step.getLearningRate());
        index.objects(
                        "SELECT 'policy-versions-' || partition || '@' || offset AS place, published_ms, version FROM version"
                                + " WHERE epoch = ? AND version = ?",
                        List.of(step.getEpoch(), step.getVersion()))
                .forEach(version -> json.set("version", version));
    }

    private static void siblings(ArrayNode json, RunIndex index, String group) {
        json.addAll(index.objects(
                "SELECT id, sample, reward, policy_tokens AS tokens, advantage, " + RolloutRows.STATE + " AS state"
                        + RolloutRows.FROM + " WHERE grp = ? AND tokens IS NOT NULL ORDER BY sample LIMIT 256",
                List.of(group)));
    }

    private static void tokens(ObjectNode json, Rollout rollout, GroupTrace trace, Optional<Tokenizer> tokenizer) {
        int[] prompt = PackedInts.toArray(rollout.getPromptTokens());
        int[] response = PackedInts.toArray(rollout.getResponseTokens());
        json.put("reward", rollout.getReward());
        numbers(json.putArray("prompt_ids"), prompt);
        numbers(json.putArray("ids"), response);
        tokenizer.ifPresent(words -> {
            json.put("prompt_text", words.decode(prompt));
            json.put("text", words.decode(response));
            texts(json.putArray("prompt_tokens"), prompt, words);
            texts(json.putArray("tokens"), response, words);
        });
        ArrayNode mask = json.putArray("mask");
        for (byte each : PackedMask.toArray(rollout.getMask())) {
            mask.add(each);
        }
        ArrayNode speakers = json.putArray("speakers");
        for (Turn turn : rollout.getTurns()) {
            speakers.addArray()
                    .add(turn.getSpeaker().name().toLowerCase(Locale.ROOT))
                    .add(turn.getStart())
                    .add(turn.getEnd());
        }
        ArrayNode spans = json.putArray("versions");
        for (VersionSpan span : rollout.getVersionSpans()) {
            spans.addArray().add(span.getVersion()).add(span.getStart()).add(span.getEnd());
        }
        floats(json, "behavior", rollout.getBehaviorLogProbs());
        Optional<Trajectory> trajectory =
                trace.inputs().trajectories().stream().map(Found::value).findFirst();
        trajectory.ifPresent(joined -> {
            json.put("proximal_version", joined.getProximalVersion());
            floats(json, "proximal", joined.getProximalLogProbs());
            floats(json, "old", joined.getOldLogProbs());
            floats(json, "reference", joined.getReferenceLogProbs());
            floats(json, "entropies", joined.getProximalEntropies());
        });
        if (!json.has("entropies")) {
            trace.inputs().scores().stream()
                    .flatMap(score -> score.value().getVectors().stream())
                    .filter(vector -> vector.getPolicy() == PolicyRole.PROXIMAL || vector.getPolicy() == PolicyRole.OLD)
                    .map(LogProbVector::getEntropies)
                    .filter(java.util.Objects::nonNull)
                    .findFirst()
                    .ifPresent(entropies -> floats(json, "entropies", entropies));
        }
        trace.decisions().entries().stream().findFirst().ifPresent(found -> left(json, found, rollout, trace));
    }

    /** What the stages left; the log has only the count where the learner decided again. */
    private static void left(ObjectNode json, FoundEntry found, Rollout rollout, GroupTrace trace) {
        BatchEntry entry = found.entry();
        StepEntry word = trace.stepOf(found)
                .map(step -> trace.lastWord(found, step))
                .orElseGet(() -> new StepEntry(entry.getTrainedTokens(), entry.getMaskedBy()));
        json.put("advantage", entry.getAdvantage())
                .put("trained_tokens", word.getTrainedTokens())
                .put("masked_by", word.getMaskedBy())
                .put(
                        "decided_anew",
                        word.getTrainedTokens() > 0 && word.getTrainedTokens() != entry.getTrainedTokens());
        floats(json, "weights", entry.getWeights());
        ArrayNode left = json.putArray("left");
        for (byte each : PackedMask.toArray(entry.getMask() == null ? rollout.getMask() : entry.getMask())) {
            left.add(word.getTrainedTokens() == 0 ? 0 : each);
        }
    }

    private static void numbers(ArrayNode array, int[] values) {
        for (int value : values) {
            array.add(value);
        }
    }

    private static void texts(ArrayNode array, int[] tokens, Tokenizer words) {
        for (int token : tokens) {
            array.add(words.decode(new int[] {token}));
        }
    }

    private static void floats(ObjectNode json, String name, @Nullable ByteBuffer packed) {
        if (packed == null) {
            return;
        }
        ArrayNode array = json.putArray(name);
        for (float value : PackedFloats.toArray(packed)) {
            if (Float.isFinite(value)) {
                array.add(value);
            } else {
                array.addNull();
            }
        }
    }
}
