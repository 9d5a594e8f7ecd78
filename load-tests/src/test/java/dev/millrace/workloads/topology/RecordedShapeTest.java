package dev.millrace.workloads.topology;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.log.scan.RecordFetcher;
import dev.millrace.replay.archive.RecordCursor;
import dev.millrace.replay.archive.RecordedRun;
import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Score;
import dev.millrace.schemas.registry.InMemorySchemaRegistry;
import dev.millrace.schemas.registry.SchemaRegistry;
import dev.millrace.schemas.run.EpochLineage;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.workloads.topology.RolloutShape.RolloutDraw;
import dev.millrace.workloads.topology.RolloutShape.RolloutDraw.Fate;
import dev.millrace.workloads.topology.SyntheticRun.SyntheticRecords;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.junit.jupiter.api.Test;

class RecordedShapeTest {
    private static final RunIdentity RUN = new RunIdentity("load", 0, "policy");
    private static final RunTopics TOPICS = new RunTopics("load.");

    private final SchemaRegistry registry = new InMemorySchemaRegistry();
    private final List<byte[]> rollouts = new ArrayList<>();
    private final List<byte[]> scores = new ArrayList<>();

    /** A run whose rollouts were drawn. */
    private void record(RolloutShape shape, int count) {
        SyntheticRecords records = new SyntheticRecords(RUN, TOPICS, shape, 1);
        for (int i = 0; i < count; i++) {
            RolloutDraw draw = records.draw(i);
            rollouts.add(
                    draw.fate() == Fate.GARBAGE
                            ? new byte[] {1, 2}
                            : AvroSerde.of(Rollout.class, registry)
                                    .serializer()
                                    .serialize(TOPICS.rollouts(), records.rollout(draw, 100, 0)));
            if (draw.fate() == Fate.SCORED) {
                scores.add(AvroSerde.of(Score.class, registry)
                        .serializer()
                        .serialize(
                                TOPICS.scores(),
                                records.score(draw, new LogCoordinates(TOPICS.rollouts(), 0, (long) i), 100, 0)));
            }
        }
    }

    @Test
    void shouldFindWhatWasDrawn() {
        record(
                new RolloutShape(
                        "",
                        4,
                        Distribution.uniform(10, 20),
                        Distribution.uniform(1, 300),
                        Distribution.uniform(0, 6),
                        0,
                        0,
                        0.1,
                        0.05),
                4000);
        RecordedShape found = RecordedShape.of(run());
        assertThat(found.groupSize()).isEqualTo(4);
        assertThat(found.garbageShare()).isCloseTo(0.05, within(0.015));
        assertThat(found.unscoredShare()).isCloseTo(0.1 / 0.95, within(0.02));
        assertThat(found.promptTokens().least()).isEqualTo(10);
        assertThat(found.promptTokens().most()).isEqualTo(20);
        assertThat(found.responseTokens().quantiles().get(50)).isBetween(135L, 165L);
        assertThat(found.versionsBehind().least()).isZero();
        assertThat(found.versionsBehind().most()).isEqualTo(6);
        RolloutShape again = RolloutShape.defaults().with(found);
        assertThat(again.groupSize()).isEqualTo(4);
        assertThat(again.responseTokens()).isEqualTo(found.responseTokens());
    }

    @Test
    void shouldCountARolloutThatWasWrittenTwiceOnce() {
        record(RolloutShape.defaults(), 80);
        rollouts.addAll(List.copyOf(rollouts));
        scores.addAll(List.copyOf(scores));
        assertThat(RecordedShape.of(run()).rollouts()).isEqualTo(80);
        assertThat(RecordedShape.of(run()).unscoredShare()).isZero();
    }

    @Test
    void shouldRefuseARunThatSaysNothing() {
        record(
                new RolloutShape(
                        "", 4, Distribution.fixed(1), Distribution.fixed(1), Distribution.fixed(0), 0, 0, 1, 0),
                8);
        assertThatThrownBy(() -> RecordedShape.of(run()))
                .isInstanceOf(LoadException.class)
                .hasMessageContaining("no rollout with a score");
        record(RolloutShape.defaults(), 8);
        assertThatThrownBy(() -> RecordedShape.of(run()))
                .isInstanceOf(LoadException.class)
                .hasMessageContaining("several sizes [4, 8]");
    }

    private RecordedRun run() {
        Map<String, List<byte[]>> topics = Map.of(TOPICS.rollouts(), rollouts, TOPICS.scores(), scores);
        return new RecordedRun() {
            @Override
            public RunIdentity run() {
                return RUN;
            }

            @Override
            public EpochLineage lineage() {
                return EpochLineage.FIRST;
            }

            @Override
            public RunTopics topics() {
                return TOPICS;
            }

            @Override
            public SchemaRegistry registry() {
                return registry;
            }

            @Override
            public Optional<String> configuration() {
                return Optional.empty();
            }

            @Override
            public List<TopicPartition> partitions(String topic) {
                return List.of(new TopicPartition(topic, 0));
            }

            @Override
            public Range range(TopicPartition partition) {
                return new Range(0, topics.get(partition.topic()).size());
            }

            @Override
            public RecordCursor read(TopicPartition partition, long from) {
                Iterator<byte[]> values = topics.get(partition.topic()).iterator();
                return new RecordCursor() {
                    @Override
                    public Optional<ConsumerRecord<byte[], byte[]>> next() {
                        return values.hasNext()
                                ? Optional.of(new ConsumerRecord<>(partition.topic(), 0, 0, null, values.next()))
                                : Optional.empty();
                    }

                    @Override
                    public void close() {
                        // nothing is open
                    }
                };
            }

            @Override
            public RecordFetcher fetcher() {
                throw new UnsupportedOperationException("nothing points at a record here");
            }

            @Override
            public boolean hasGrown() {
                return false;
            }

            @Override
            public void close() {
                // nothing is open
            }
        };
    }
}
