package dev.millrace.topology;

import static dev.millrace.topology.RunOnBroker.await;
import static dev.millrace.topology.RunOnBroker.settled;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.log.Alarm;
import dev.millrace.log.deadletter.Quarantines;
import dev.millrace.log.transaction.TakenOverException;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.Trajectory;
import dev.millrace.topology.TopologyRunner.GroupSetup;
import dev.millrace.topology.TopologyRunner.StaticTransactionalIds;
import dev.millrace.topology.TopologyRunner.StaticTransactionalIds.InputConsumer;
import dev.millrace.topology.state.StateStores;
import dev.millrace.topology.task.TopologyMeters;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsConfig;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class TopologyRunnerIT {
    @TempDir
    static Path directory;

    private static EmbeddedBroker broker;

    @BeforeAll
    static void startBroker() {
        broker = EmbeddedBroker.start(directory.resolve("broker"));
    }

    @AfterAll
    static void stopBroker() {
        broker.close();
    }

    @Test
    void shouldMakeBatchesAndDeadLetterGarbageWithoutStopping() throws Exception {
        try (RunOnBroker run = new RunOnBroker(broker, "basic.")) {
            TopologyRunner runner = new TopologyRunner(
                    MillraceTopologyTest.batchesOf(4),
                    Algorithm.defaults(),
                    run.connection,
                    directory.resolve("basic"),
                    new SimpleMeterRegistry());
            CompletableFuture<Void> ended = CompletableFuture.runAsync(runner::run);
            settled(run.send(run.connection.topics().rollouts(), "g0", "garbage".getBytes(StandardCharsets.UTF_8)));
            for (int group = 0; group < 4; group++) {
                run.sendScored(Samples.rollout("g" + group, 0).setReward(0).build());
                run.sendScored(Samples.rollout("g" + group, 1).build());
            }
            await(
                    "two batches",
                    () -> run.read(run.connection.topics().batches()).size() == 2);
            runner.stop();
            ended.get(90, TimeUnit.SECONDS);

            List<LearnerBatch> batches = run.read(run.connection.topics().batches(), LearnerBatch.class);
            List<ConsumerRecord<byte[], byte[]>> trajectories =
                    run.read(run.connection.topics().trajectories());
            assertThat(batches).extracting(LearnerBatch::getBatchId).containsExactly(0L, 1L);
            for (LearnerBatch batch : batches) {
                for (BatchEntry entry : batch.getEntries()) {
                    assertThat(trajectories).anySatisfy(record -> {
                        assertThat(record.offset()).isEqualTo(entry.getOffset());
                        assertThat(record.partition()).isEqualTo(entry.getPartition());
                    });
                }
            }
            assertThat(run.read(run.connection.topics().trajectories(), Trajectory.class))
                    .hasSize(8);
            assertThat(run.read(run.connection.topics().deadLetters()))
                    .singleElement()
                    .satisfies(dead -> {
                        assertThat(dead.value()).isEqualTo("garbage".getBytes(StandardCharsets.UTF_8));
                        assertThat(new String(
                                        dead.headers()
                                                .lastHeader("millrace.error.reason")
                                                .value(),
                                        StandardCharsets.UTF_8))
                                .isEqualTo("unreadable");
                    });
        }
    }

    @Test
    void shouldReadNothingToJoinWhileManyTrajectoriesWait() {
        try (RunOnBroker run = new RunOnBroker(broker, "ahead.")) {
            String trajectories = run.connection.topics().trajectories();
            String rollouts = run.connection.topics().rollouts();
            for (int batch = 0; batch < 30; batch++) {
                for (int i = 0; i < 99; i++) {
                    run.send(trajectories, "policy", new byte[] {1});
                }
                settled(run.send(trajectories, "policy", new byte[] {1}));
            }
            for (int group = 0; group < 16; group++) {
                settled(run.send(rollouts, "g" + group, new byte[] {1}));
            }
            Map<String, Object> settings = run.connection.consumer(Map.of(
                    ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest",
                    ConsumerConfig.MAX_PARTITION_FETCH_BYTES_CONFIG, 1, // a batch, so that partitions take turns
                    ConsumerConfig.MAX_POLL_RECORDS_CONFIG, 100));
            try (InputConsumer consumer = new InputConsumer(settings, trajectories, Set.of(rollouts))) {
                List<TopicPartition> inputs = Stream.of(rollouts, trajectories)
                        .flatMap(topic -> consumer.partitionsFor(topic).stream())
                        .map(of -> new TopicPartition(of.topic(), of.partition()))
                        .toList();
                TopicPartition waiting = new TopicPartition(trajectories, 0);
                TopicPartition ofTheEngine = inputs.get(0);
                Map<String, Integer> read = new HashMap<>();
                consumer.assign(List.of(waiting));
                await("a trajectory", () -> {
                    consumer.poll(Duration.ofMillis(100))
                            .forEach(record -> read.merge(record.topic(), 1, Integer::sum));
                    return !read.isEmpty();
                });
                consumer.assign(inputs);
                consumer.pause(List.of(ofTheEngine));

                AtomicInteger held = new AtomicInteger();
                await("all that can be read", () -> {
                    boolean behind = consumer.currentLag(waiting).orElseThrow() > 1_000;
                    consumer.poll(Duration.ofMillis(100))
                            .forEach(record -> read.merge(record.topic(), 1, Integer::sum));
                    if (behind) {
                        held.incrementAndGet();
                        assertThat(read).doesNotContainKey(rollouts);
                    }
                    assertThat(consumer.paused()).containsExactly(ofTheEngine);
                    return consumer.currentLag(waiting).orElseThrow() == 0 && read.containsKey(rollouts);
                });

                assertThat(held.get()).isGreaterThanOrEqualTo(15);
                assertThat(read).containsEntry(trajectories, 3_000);
            }
        }
    }

    private static TopologyConfig config(
            RebalanceProtocol protocol, StateStores.Kind stores, int standbys, String instanceId) {
        TopologyConfig config = MillraceTopologyTest.batchesOf(4);
        RuntimeConfig r = config.runtime();
        return new TopologyConfig(
                config.ingress(),
                config.join(),
                config.groups(),
                config.batch(),
                new RuntimeConfig(
                        r.threads(),
                        r.commitIntervalMs(),
                        r.maxTaskIdleMs(),
                        stores,
                        r.storeCacheBytes(),
                        r.memberCacheBytes(),
                        r.rocksdbBytes(),
                        r.bufferedRecords(),
                        standbys,
                        protocol,
                        r.sessionTimeoutMs(),
                        instanceId,
                        r.transactionTimeoutMs(),
                        r.compression(),
                        r.startTimeoutMs(),
                        r.stopTimeoutMs(),
                        1_000));
    }

    @Test
    void shouldGoOnInAStreamsGroupWithStoresOnDiskAndRingWhereScoresAreMissing() throws Exception {
        try (RunOnBroker run = new RunOnBroker(broker, "streams.")) {
            TopologyConfig config = config(RebalanceProtocol.AUTO, StateStores.Kind.ROCKSDB, 1, "");
            for (int start = 0; start < 2; start++) {
                int batches = start;
                SimpleMeterRegistry meters = new SimpleMeterRegistry();
                TopologyRunner runner = new TopologyRunner(
                        config, Algorithm.defaults(), run.connection, directory.resolve("streams"), meters);
                CompletableFuture<Void> ended = CompletableFuture.runAsync(runner::run);
                for (int group = 0; group < 2; group++) {
                    run.sendScored(
                            Samples.rollout("g" + start + group, 0).setReward(0).build());
                    run.sendScored(Samples.rollout("g" + start + group, 1).build());
                }
                await(
                        "a batch",
                        () -> run.read(run.connection.topics().batches()).size() == 1 + batches);
                if (start == 1) {
                    settled(run.send(Samples.rollout("alone", 0).build()));
                    await(
                            "an alarm",
                            () -> run.connection.alarms().active().stream()
                                    .map(Alarm::sentence)
                                    .anyMatch(alarm -> alarm.startsWith("join, partition ")
                                            && alarm.contains("alone/0, for ")
                                            && alarm.contains("for its score")));
                    assertThat(run.connection.alarms().active())
                            .noneMatch(alarm -> alarm.subject().startsWith("input "));
                    await(
                            "its gauge",
                            () -> meters.find("millrace.alarm")
                                            .tag("stage", "join")
                                            .gauge()
                                            .value()
                                    == 1);
                }
                runner.stop();
                ended.get(90, TimeUnit.SECONDS);
            }
            try (Admin admin = Admin.create(run.connection.admin())) {
                String group = run.connection.group("topology");
                assertThat(admin.describeStreamsGroups(List.of(group)).all().get(90, TimeUnit.SECONDS))
                        .containsKey(group);
                ConfigResource resource = new ConfigResource(ConfigResource.Type.GROUP, group);
                assertThat(admin.describeConfigs(List.of(resource))
                                .all()
                                .get(90, TimeUnit.SECONDS)
                                .get(resource)
                                .get("streams.num.standby.replicas")
                                .value())
                        .isEqualTo("1");
            }
        }
    }

    /**
     * A group member with the instance's name that is not another instance. It has other transactional ids: with the same ones
     * it would join again whenever the instance's producer fences it, and fence the instance in turn, again and again.
     */
    private static KafkaStreams ghost(RunOnBroker run, TopologyConfig config, Quarantines quarantines) {
        String name = config.runtime().instanceId();
        return new KafkaStreams(
                MillraceTopology.build(
                        config,
                        Algorithm.defaults(),
                        RunContext.of(run.connection, new TopologyMeters(new SimpleMeterRegistry())),
                        quarantines),
                new StreamsConfig(StreamsProperties.of(
                        config.runtime(),
                        run.connection,
                        directory.resolve("ghost"),
                        StreamsConfig.EXACTLY_ONCE_V2,
                        name)),
                new StaticTransactionalIds(
                        StreamsProperties.transactionalPrefix(run.connection, name) + "-ghost",
                        run.connection.topics().trajectories(),
                        MillraceTopology.joined(config, run.connection.topics())));
    }

    private static void sendBatch(RunOnBroker run, String group) {
        run.sendScored(Samples.rollout(group + "-0", 0).setReward(0).build());
        run.sendScored(Samples.rollout(group + "-0", 1).build());
        run.sendScored(Samples.rollout(group + "-1", 0).setReward(0).build());
        run.sendScored(Samples.rollout(group + "-1", 1).build());
    }

    @Test
    void shouldBeginAgainWhereItIsFencedByItsOwnGhostAndEndWhereAnotherHasTakenItsName() throws Exception {
        try (RunOnBroker run = new RunOnBroker(broker, "ghost.");
                Quarantines quarantines = Quarantines.of(run.connection)) {
            quarantines.open();
            TopologyConfig config = config(RebalanceProtocol.CLASSIC, StateStores.Kind.IN_MEMORY, 0, "one");
            TopologyRunner runner = new TopologyRunner(
                    config,
                    Algorithm.defaults(),
                    run.connection,
                    directory.resolve("haunted"),
                    new SimpleMeterRegistry());
            CompletableFuture<Void> ended = CompletableFuture.runAsync(runner::run);
            sendBatch(run, "first");
            await("a batch", () -> run.read(run.connection.topics().batches()).size() == 1);

            KafkaStreams ghost = ghost(run, config, quarantines);
            try {
                ghost.start();
                await("the ghost, which is fenced in its turn", () -> {
                    if (ended.isDone()) {
                        ended.join();
                    }
                    return ghost.state() == KafkaStreams.State.ERROR;
                });
            } finally {
                ghost.close(Duration.ofSeconds(20));
            }
            sendBatch(run, "second");
            await(
                    "another batch",
                    () -> run.read(run.connection.topics().batches()).size() == 2);
            assertThat(ended).isNotDone();

            TopologyRunner other = new TopologyRunner(
                    config,
                    Algorithm.defaults(),
                    run.connection,
                    directory.resolve("successor"),
                    new SimpleMeterRegistry());
            CompletableFuture<Void> otherEnded = CompletableFuture.runAsync(other::run);
            assertThatThrownBy(() -> ended.get(90, TimeUnit.SECONDS))
                    .rootCause()
                    .isInstanceOf(TakenOverException.class)
                    .hasMessageContaining("topology-one: fenced by");
            other.stop();
            otherEnded.get(90, TimeUnit.SECONDS);
            assertThat(run.read(run.connection.topics().batches(), LearnerBatch.class))
                    .extracting(LearnerBatch::getBatchId)
                    .containsExactly(0L, 1L);
        }
    }

    @Test
    void shouldRefuseAStreamsGroupThatTheBrokerDoesNotGrantAndGoWithoutWhereItMay() {
        try (RunOnBroker run = new RunOnBroker(broker, "ungranted.")) {
            int tooMany = 5; // group.streams.max.standby.replicas is 2
            TopologyConfig demanded = config(RebalanceProtocol.STREAMS, StateStores.Kind.IN_MEMORY, tooMany, "");
            assertThatThrownBy(() -> new GroupSetup(demanded.runtime(), run.connection).usesStreamsGroup())
                    .isInstanceOf(TopologyException.class)
                    .hasMessageContainingAll("rebalance_protocol is streams", "standby_replicas 5");
            TopologyConfig wished = config(RebalanceProtocol.AUTO, StateStores.Kind.IN_MEMORY, tooMany, "");
            assertThat(new GroupSetup(wished.runtime(), run.connection).usesStreamsGroup())
                    .isFalse();
            TopologyConfig named = config(RebalanceProtocol.AUTO, StateStores.Kind.IN_MEMORY, 0, "one");
            assertThat(new GroupSetup(named.runtime(), run.connection).usesStreamsGroup())
                    .isFalse();
        }
    }

    @Test
    void shouldKeepAnInstancesNameInItsStateDirectory() {
        String name = InstanceName.of("", directory.resolve("named"));
        assertThat(name)
                .isEqualTo(InstanceName.of("", directory.resolve("named")))
                .hasSizeGreaterThan(10);
        assertThat(InstanceName.of("", directory.resolve("other"))).isNotEqualTo(name);
        assertThat(InstanceName.of("mine", directory.resolve("named"))).isEqualTo("mine");
    }

    @Test
    void shouldRefuseToStartWithoutTheTopicsOfTheRun() {
        try (RunOnBroker run = new RunOnBroker(broker, "there.")) {
            var elsewhere = new dev.millrace.log.LogConnection(
                    run.connection.clientProperties(),
                    new dev.millrace.schemas.run.RunTopics("nowhere."),
                    Samples.RUN,
                    run.connection.registry());
            TopologyRunner runner = new TopologyRunner(
                    TopologyConfig.defaults(),
                    Algorithm.defaults(),
                    elsewhere,
                    directory.resolve("nowhere"),
                    new SimpleMeterRegistry());
            assertThatThrownBy(runner::run)
                    .isInstanceOf(TopologyException.class)
                    .hasMessageContaining("does not exist")
                    .hasMessageContaining("create the run first");
        }
    }
}
