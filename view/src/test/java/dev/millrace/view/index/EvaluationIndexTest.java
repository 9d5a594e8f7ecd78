package dev.millrace.view.index;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.millrace.runtime.evaluation.EvaluationRecords;
import dev.millrace.schemas.EvaluatedPrompt;
import dev.millrace.schemas.SamplingParameters;
import dev.millrace.schemas.VersionEvaluation;
import dev.millrace.schemas.registry.InMemorySchemaRegistry;
import dev.millrace.schemas.run.EvaluationKey;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.view.http.Answers;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class EvaluationIndexTest {
    private static final RunTopics TOPICS = new RunTopics("x.");
    private static final InMemorySchemaRegistry REGISTRY = new InMemorySchemaRegistry();

    @TempDir
    Path folder;

    private static VersionEvaluation evaluation(long version, String data, int correct, long finishedAtMs) {
        return EvaluationRecords.recomputed(VersionEvaluation.newBuilder()
                .setRunId("r")
                .setEpoch(0)
                .setPolicyId("policy")
                .setVersion(version)
                .setWeightsSha256("of-" + version)
                .setDataSha256(data)
                .setSamplesPerPrompt(4)
                .setSampling(new SamplingParameters(1.0, 0, 1.0, 8, 1L, false, 0, 0.0, false))
                .setCorrectAbove(0.5)
                .setPrompts(List.of(
                        new EvaluatedPrompt(4, correct, (double) correct, 20L, 0),
                        new EvaluatedPrompt(4, 4, 4.0, 20L, 0)))
                .setRewardMean(0)
                .setPassAtK(List.of())
                .setDifficulties(List.of())
                .setTruncatedShare(0)
                .setFailed(0)
                .setStartedAtMs(1)
                .setFinishedAtMs(finishedAtMs)
                .build());
    }

    private static ConsumerRecord<byte[], byte[]> record(long offset, VersionEvaluation evaluation) {
        String topic = TOPICS.evaluations();
        return new ConsumerRecord<>(
                topic,
                0,
                offset,
                EvaluationKey.of(evaluation).bytes(),
                AvroSerde.of(VersionEvaluation.class, REGISTRY).serializer().serialize(topic, evaluation));
    }

    @Test
    void shouldHaveTheNewestRecordOfEachVersionOnThePromptsThatWereAskedLast() throws Exception {
        try (RunIndex index = RunIndex.open(folder)) {
            RecordIndexer indexer = new RecordIndexer(TOPICS, "r", REGISTRY, Optional.empty());
            RecordIndexer.Taken taken = indexer.take(
                    index,
                    List.of(
                            record(0, evaluation(0, "before", 4, 1)),
                            record(1, evaluation(10, "now", 2, 2)),
                            record(2, evaluation(0, "now", 1, 3)),
                            record(3, evaluation(10, "now", 3, 4))),
                    true);
            assertThat(taken.steps()).as("readers see it").isTrue();

            JsonNode rows =
                    new ObjectMapper().readTree(Answers.evaluations(index, 0)).path("evaluations");
            assertThat(rows).extracting(row -> row.path("version").asInt()).containsExactly(0, 10);
            assertThat(rows.at("/0/reward").asDouble()).isEqualTo(0.625); // (1/4 + 1) / 2
            assertThat(rows.at("/1/reward").asDouble()).isEqualTo(0.875);
            assertThat(rows.at("/1/pass_at_k/0/unbiased").asDouble()).isEqualTo(0.875);
            assertThat(Answers.evaluations(index, 1))
                    .as("another epoch has none")
                    .isEqualTo("{\"evaluations\":[]}");
        }
    }
}
