package dev.millrace.view.http;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.log.deadletter.DeadLetterHeaders;
import dev.millrace.runtime.report.RecordJson;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.Outcome;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.Reward;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Score;
import dev.millrace.schemas.Serving;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.VersionEvaluation;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import dev.millrace.view.follow.OpenRun;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.avro.specific.SpecificRecord;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;

/** One record as it lies on the log, by its place. */
public final class RecordAnswer {
    private static final Pattern PLACE = Pattern.compile("([a-z-]{1,60})-(\\d{1,6})@(\\d{1,18})");
    private static final int MOST_BYTES = 4096;

    private RecordAnswer() {}

    /**
     * The record.
     *
     * @param place such as {@code rollouts-3@19}, without the topics' prefix
     */
    public static ObjectNode of(OpenRun run, String place) {
        ObjectNode json = JsonNodeFactory.instance.objectNode().put("place", place);
        Matcher matcher = PLACE.matcher(place);
        Map<String, Class<? extends SpecificRecord>> types =
                types(run.recorded().topics());
        String topic = matcher.matches() ? run.recorded().topics().prefix() + matcher.group(1) : "";
        if (!matcher.matches()
                || !types.containsKey(topic)
                        && !topic.equals(run.recorded().topics().deadLetters())) {
            return json.put("problem", place + " is no place of a record of a run, such as rollouts-3@19");
        }
        Optional<ConsumerRecord<byte[], byte[]>> found = RolloutTrace.fetch(
                run, new TopicPartition(topic, Integer.parseInt(matcher.group(2))), Long.parseLong(matcher.group(3)));
        if (found.isEmpty()) {
            return json.put("problem", "there is no record at " + place + ", or not any more");
        }
        ConsumerRecord<byte[], byte[]> record = found.get();
        json.put("topic", topic)
                .put("partition", record.partition())
                .put("offset", record.offset())
                .put("timestamp_ms", record.timestamp())
                .put("key", record.key() == null ? null : new String(record.key(), StandardCharsets.UTF_8))
                .put("bytes", record.value() == null ? 0 : record.value().length);
        ObjectNode headers = json.putObject("headers");
        record.headers()
                .forEach(header -> headers.put(
                        header.key(),
                        header.value() == null ? null : new String(header.value(), StandardCharsets.UTF_8)));
        String source = DeadLetterHeaders.text(record.headers(), DeadLetterHeaders.SOURCE_TOPIC);
        Class<? extends SpecificRecord> type = types.get(source.isEmpty() ? topic : source);
        if (record.value() != null && type != null) {
            try {
                json.set(
                        "record",
                        RecordJson.of(Objects.requireNonNull(
                                AvroSerde.of(type, run.recorded().registry())
                                        .deserializer()
                                        .deserialize(source.isEmpty() ? topic : source, record.value()))));
                return json;
            } catch (MalformedRecordException e) {
                json.put("unreadable", e.getMessage());
            }
        }
        if (record.value() != null) {
            json.put("hex", HexFormat.of().formatHex(record.value(), 0, Math.min(MOST_BYTES, record.value().length)));
        }
        return json;
    }

    private static Map<String, Class<? extends SpecificRecord>> types(RunTopics topics) {
        Map<String, Class<? extends SpecificRecord>> types = new HashMap<>();
        types.put(topics.prompts(), PromptRequest.class);
        types.put(topics.rollouts(), Rollout.class);
        types.put(topics.scores(), Score.class);
        types.put(topics.referenceScores(), Score.class);
        types.put(topics.teacherScores(), Score.class);
        types.put(topics.rewards(), Reward.class);
        types.put(topics.trajectories(), Trajectory.class);
        types.put(topics.batches(), LearnerBatch.class);
        types.put(topics.outcomes(), Outcome.class);
        types.put(topics.trainingLog(), TrainingStep.class);
        types.put(topics.policyVersions(), PolicyVersion.class);
        types.put(topics.serving(), Serving.class);
        types.put(topics.evaluations(), VersionEvaluation.class);
        return types;
    }
}
