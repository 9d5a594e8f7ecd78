package dev.millrace.log.run;

import dev.millrace.schemas.run.RunTopics;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.config.TopicConfig;

/** The settings of each topic of a run. */
final class RunTopicSettings {
    /** A version's chunks leave the log segment by segment, so a segment must not hold many versions. */
    private static final int WEIGHTS_SEGMENT_BYTES = 64 << 20;
    /** Compacted topics of a run are small; a segment that is never closed is never compacted. */
    private static final int COMPACTED_SEGMENT_BYTES = 16 << 20;

    /** A refused record is larger than it was by the headers that say why; the largest one must still fit. */
    private static final int ERROR_HEADERS_BYTES = 64 << 10;

    private final TopicsConfig config;

    RunTopicSettings(TopicsConfig config) {
        this.config = config;
    }

    /** The one topic that says whose the others are. */
    TopicSettings claim(RunTopics topics) {
        return compacted(topics.run());
    }

    /** Every other topic of a run that has these topics of partners. */
    List<TopicSettings> others(RunTopics topics, Set<String> partnerTopics) {
        return possible(topics).stream()
                .filter(topic -> !topics.ofPartners().contains(topic.name()) || partnerTopics.contains(topic.name()))
                .toList();
    }

    private List<TopicSettings> possible(RunTopics topics) {
        int partitions = config.partitions();
        return List.of(
                kept(topics.prompts(), partitions, config.passingRetentionMs()),
                kept(topics.rollouts(), partitions, config.recordRetentionMs()),
                kept(topics.scores(), partitions, config.recordRetentionMs()),
                kept(topics.rewards(), partitions, config.recordRetentionMs()),
                kept(topics.referenceScores(), partitions, config.recordRetentionMs()),
                kept(topics.teacherScores(), partitions, config.recordRetentionMs()),
                kept(topics.trajectories(), 1, config.passingRetentionMs()),
                kept(topics.batches(), 1, config.recordRetentionMs()),
                compacted(topics.policyVersions()),
                window(topics.weights(), config.weightsRetentionBytes()),
                window(topics.optimizerState(), config.optimizerRetentionBytes()),
                kept(topics.trainingLog(), 1, config.recordRetentionMs()),
                compacted(topics.serving()),
                kept(topics.outcomes(), partitions, config.recordRetentionMs()),
                compacted(topics.admission()),
                kept(topics.sessions(), partitions, config.recordRetentionMs()),
                compacted(topics.files()),
                compacted(topics.evaluations()),
                kept(topics.deadLetters(), 1, config.recordRetentionMs())
                        .with(TopicConfig.MAX_MESSAGE_BYTES_CONFIG, config.maxRecordBytes() + ERROR_HEADERS_BYTES));
    }

    /** The registry's topic, which is the cluster's and not the run's. */
    TopicSettings schemas() {
        return new TopicSettings(
                config.schemasTopic(),
                1,
                Map.of(TopicConfig.CLEANUP_POLICY_CONFIG, TopicConfig.CLEANUP_POLICY_COMPACT));
    }

    private TopicSettings kept(String name, int partitions, long retentionMs) {
        return base(name, partitions)
                .with(TopicConfig.CLEANUP_POLICY_CONFIG, TopicConfig.CLEANUP_POLICY_DELETE)
                .with(TopicConfig.RETENTION_MS_CONFIG, retentionMs)
                .with(TopicConfig.RETENTION_BYTES_CONFIG, -1);
    }

    private TopicSettings window(String name, long retentionBytes) {
        TopicSettings kept = base(name, 1)
                .with(TopicConfig.CLEANUP_POLICY_CONFIG, TopicConfig.CLEANUP_POLICY_DELETE)
                .with(TopicConfig.RETENTION_MS_CONFIG, -1)
                .with(TopicConfig.SEGMENT_BYTES_CONFIG, WEIGHTS_SEGMENT_BYTES);
        // whoever does not know the model asks for nothing
        return retentionBytes == 0 ? kept : kept.with(TopicConfig.RETENTION_BYTES_CONFIG, retentionBytes);
    }

    private TopicSettings compacted(String name) {
        return base(name, 1)
                .with(TopicConfig.CLEANUP_POLICY_CONFIG, TopicConfig.CLEANUP_POLICY_COMPACT)
                .with(TopicConfig.SEGMENT_BYTES_CONFIG, COMPACTED_SEGMENT_BYTES);
    }

    private TopicSettings base(String name, int partitions) {
        TopicSettings settings = new TopicSettings(
                name,
                partitions,
                Map.of(TopicConfig.MAX_MESSAGE_BYTES_CONFIG, Integer.toString(config.maxRecordBytes())));
        return config.minInsyncReplicas() == -1
                ? settings
                : settings.with(TopicConfig.MIN_IN_SYNC_REPLICAS_CONFIG, config.minInsyncReplicas());
    }
}
