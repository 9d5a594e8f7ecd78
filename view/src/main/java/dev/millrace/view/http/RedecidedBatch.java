package dev.millrace.view.http;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.algorithm.NamedAlgorithms;
import dev.millrace.replay.Alternative;
import dev.millrace.replay.DecidedFigures;
import dev.millrace.replay.KeptBatch;
import dev.millrace.replay.ReplayedStep;
import dev.millrace.replay.StepRange;
import dev.millrace.replay.WhatIf;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.runtime.report.NamedCorrections;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.StageReport;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.view.follow.OpenRun;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.common.TopicPartition;
import org.jspecify.annotations.Nullable;

/** One batch decided again by another algorithm through the engine of {@code millrace replay}. */
public final class RedecidedBatch {
    private RedecidedBatch() {}

    /** Named algorithms, in addition to keys as YAML. */
    public static Set<String> names() {
        Set<String> names = new LinkedHashSet<>(List.of("none"));
        names.addAll(NamedAlgorithms.all().keySet());
        return names;
    }

    /**
     * @param named one of {@link #names}, or keys of {@code algorithm} as YAML over the run's own
     * @throws ConfigException if it is neither, or conflicts with the run
     */
    public static ObjectNode of(OpenRun run, long offset, String named) throws InterruptedException {
        Algorithm ofRun = run.config().algorithm();
        Alternative other = alternative(named, ofRun);
        StepRange one = new StepRange(Long.MIN_VALUE, Long.MAX_VALUE, Long.MIN_VALUE, Long.MAX_VALUE, offset, offset);
        List<ReplayedStep> steps = new ArrayList<>();
        List<KeptBatch> kept = new ArrayList<>();
        WhatIf replay = new WhatIf(run.recorded(), one, List.of(new Alternative("recorded", ofRun), other))
                .keeping(kept::addAll);
        replay.replay(1, steps::add);
        ObjectNode json = JsonNodeFactory.instance.objectNode().put("algorithm", other.name());
        if (steps.isEmpty() || kept.isEmpty()) {
            return json.put(
                    "problem",
                    replay.undecided().orElseGet(() -> "there is no batch of this run at batches-0@" + offset));
        }
        json.put("is_as_recorded", steps.get(0).isAsRecorded());
        ArrayNode figures = json.putArray("figures");
        steps.get(0).figures().forEach(each -> figures(figures.addObject(), each));
        LearnerBatch decided = kept.get(0).batch();
        entries(json.putArray("entries"), decided);
        recorded(run, offset).ifPresent(batch -> entries(json.putArray("recorded"), batch));
        ArrayNode stages = json.putArray("stages");
        decided.getStages().forEach(report -> stages.add(json(report)));
        return json;
    }

    private static void entries(ArrayNode json, LearnerBatch batch) {
        for (BatchEntry entry : batch.getEntries()) {
            json.addObject()
                    .put("id", entry.getRolloutId())
                    .put("trained_tokens", entry.getTrainedTokens())
                    .put("masked_by", entry.getMaskedBy())
                    .put("advantage", entry.getAdvantage());
        }
    }

    /** The batch as assembled; the learner may have decided again since. */
    private static Optional<LearnerBatch> recorded(OpenRun run, long offset) {
        return RolloutTrace.fetch(
                        run, new TopicPartition(run.recorded().topics().batches(), 0), offset)
                .flatMap(record -> Optional.ofNullable(
                        AvroSerde.of(LearnerBatch.class, run.recorded().registry())
                                .deserializer()
                                .deserialize(record.topic(), record.value())));
    }

    private static Alternative alternative(String named, Algorithm ofRun) {
        if (names().contains(named)) {
            return NamedCorrections.parse(named, ofRun);
        }
        if (!named.contains(":")) {
            throw new ConfigException("there is no algorithm called " + named);
        }
        return new Alternative(
                "these keys", NamedCorrections.read("of the page", ConfigTree.parse(named, "what was entered"), ofRun));
    }

    private static void figures(ObjectNode json, DecidedFigures figures) {
        boolean isStarved = figures.tokens().masked() == figures.tokens().of(); // without weights
        json.put("tokens", figures.tokens().of())
                .put("tokens_masked", figures.tokens().masked())
                .put("sequences", figures.sequences().of())
                .put("sequences_masked", figures.sequences().masked())
                .put("changed_weights", figures.kept().changedWeights())
                .put("mean_weight", orNull(figures.kept().meanWeight()))
                .put("max_weight", orNull(figures.kept().maxWeight()))
                .put("ess", isStarved ? null : orNull(figures.step().essRatio()))
                .put("ess_truncated", isStarved ? null : orNull(figures.step().essRatioTruncated()))
                .put("step_scale", orNull(figures.step().scale()))
                .put("second_moment", orNull(figures.step().secondMoment()))
                .put("k1", orNull(figures.kept().k1()))
                .put("k3", orNull(figures.kept().k3()))
                .put("chi_square", orNull(figures.kept().chiSquare()))
                .put("changed_advantages", figures.advantages().changed());
    }

    static ObjectNode json(StageReport report) {
        ObjectNode json = JsonNodeFactory.instance
                .objectNode()
                .put("stage", report.getStage())
                .put("tokens_seen", report.getTokensSeen())
                .put("tokens_changed", report.getTokensChanged())
                .put("sequences_seen", report.getSequencesSeen())
                .put("sequences_changed", report.getSequencesChanged());
        ObjectNode values = json.putObject("values");
        report.getValues().forEach((name, value) -> {
            if (Double.isFinite(Objects.requireNonNull(value))) {
                values.put(name, value);
            }
        });
        return json;
    }

    private static @Nullable Double orNull(double value) {
        return Double.isFinite(value) ? value : null;
    }
}
