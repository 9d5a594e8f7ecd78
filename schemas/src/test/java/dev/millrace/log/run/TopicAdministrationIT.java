package dev.millrace.log.run;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.schemas.run.RunTopics;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(900)
class TopicAdministrationIT {
    private static final TopicsConfig CONFIG = TopicsConfig.defaults().sizedFor(1_000, 3_000);

    @TempDir
    private static Path directory;

    private static EmbeddedBroker broker;
    private static Map<String, Object> client;

    @BeforeAll
    static void startBroker() {
        broker = EmbeddedBroker.start(directory);
        client = Map.of("bootstrap.servers", broker.bootstrapServers());
    }

    @AfterAll
    static void stopBroker() {
        broker.close();
    }

    @Test
    void shouldCreateEveryTopicWithItsSettingsAndAcceptThemTheNextTime() throws Exception {
        RunTopics topics = new RunTopics("settings.");
        try (TopicAdministration administration = new TopicAdministration(client, CONFIG)) {
            administration.prepareClaim(topics);
            administration.prepareRun(topics, Set.of());
            administration.prepareRun(topics, Set.of());
            assertThat(administration.existing(topics.all()))
                    .containsExactlyInAnyOrderElementsOf(topics.all().stream()
                            .filter(topic -> !topics.ofPartners().contains(topic))
                            .toList())
                    .containsAll(topics.required());

            administration.prepareRun(topics, topics.ofPartners());
            assertThat(administration.existing(topics.all())).containsExactlyInAnyOrderElementsOf(topics.all());
        }

        assertThat(setting(topics.rollouts(), "retention.ms")).isEqualTo(Long.toString(30L * 24 * 3600 * 1000));
        assertThat(setting(topics.rollouts(), "cleanup.policy")).isEqualTo("delete");
        assertThat(setting(topics.rollouts(), "max.message.bytes")).isEqualTo("8388608");
        assertThat(setting(topics.weights(), "retention.bytes")).isEqualTo("2147483648");
        assertThat(setting(topics.weights(), "retention.ms")).isEqualTo("-1");
        assertThat(setting(topics.policyVersions(), "cleanup.policy")).isEqualTo("compact");
        assertThat(partitions(topics.rollouts())).isEqualTo(4).isEqualTo(partitions(topics.scores()));
        assertThat(partitions(topics.trajectories())).isEqualTo(1).isEqualTo(partitions(topics.policyVersions()));
    }

    @Test
    void shouldLoseNoRecordThatIsSentRightAfterCreation() throws Exception {
        byte[] value = new byte[64 << 10];
        for (int round = 0; round < 5; round++) {
            String name = "fresh-" + round;
            try (TopicAdministration administration = new TopicAdministration(client, CONFIG)) {
                administration.prepare(List.of(new TopicSettings(name, 4, Map.of())));
            }
            try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(
                    Map.of("bootstrap.servers", broker.bootstrapServers(), "delivery.timeout.ms", 31_000),
                    new ByteArraySerializer(),
                    new ByteArraySerializer())) {
                List<Future<RecordMetadata>> sent = new ArrayList<>();
                for (int i = 0; i < 200; i++) {
                    sent.add(producer.send(new ProducerRecord<>(name, i % 4, null, value)));
                }
                long[] last = new long[4];
                for (Future<RecordMetadata> one : sent) {
                    RecordMetadata at = one.get(150, TimeUnit.SECONDS);
                    last[at.partition()] = Math.max(last[at.partition()], at.offset());
                }
                assertThat(last).as("last offsets in round %d", round).containsExactly(49, 49, 49, 49);
            }
        }
    }

    @Test
    void shouldLetManyCreateTheSameTopicsAtOnce() throws Exception {
        RunTopics topics = new RunTopics("race.");
        ExecutorService pool = Executors.newFixedThreadPool(3);
        try {
            List<Future<?>> all = new ArrayList<>();
            for (int i = 0; i < 3; i++) {
                all.add(pool.submit(() -> {
                    try (TopicAdministration administration = new TopicAdministration(client, CONFIG)) {
                        administration.prepareRun(topics, Set.of());
                    }
                }));
            }
            for (Future<?> one : all) {
                one.get(150, TimeUnit.SECONDS);
            }
        } finally {
            pool.shutdownNow();
        }

        assertThat(partitions(topics.rollouts())).isEqualTo(4);
    }

    @Test
    void shouldRefuseAnExistingTopicThatContradicts() throws Exception {
        create(new NewTopic("bad1.rollouts", 3, (short) 1));
        create(new NewTopic("bad2.rollouts", 4, (short) 1).configs(Map.of("cleanup.policy", "compact")));
        create(new NewTopic("bad3.rollouts", 4, (short) 1).configs(Map.of("retention.ms", "60000")));
        create(new NewTopic("bad4.rollouts", 4, (short) 1)
                .configs(Map.of("retention.ms", "-1", "retention.bytes", "5")));

        assertRefused(
                "bad1.",
                "partitions",
                "topic bad1.rollouts has 3 partitions, expected 4; before the run has records, kafka-topics --bootstrap-server "
                        + broker.bootstrapServers() + " --alter --topic bad1.rollouts --partitions 4");
        assertRefused(
                "bad2.",
                "cleanup.policy",
                altering("bad2.rollouts", "cleanup.policy=compact, expected delete", "cleanup.policy=delete"));
        assertRefused(
                "bad3.",
                "retention.ms",
                altering(
                        "bad3.rollouts",
                        "retention.ms=60000, expected at least 2592000000",
                        "retention.ms=2592000000"));
        assertRefused(
                "bad4.",
                "retention.bytes",
                altering("bad4.rollouts", "retention.bytes=5, expected at least -1", "retention.bytes=-1"));
    }

    private static String altering(String topic, String found, String mended) {
        return "topic " + topic + " has " + found + "; kafka-configs --bootstrap-server " + broker.bootstrapServers()
                + " --alter --entity-type topics --entity-name " + topic + " --add-config " + mended;
    }

    @Test
    void shouldSayWhatDiffersAndNothingOfWhatIsAsExpected() throws Exception {
        RunTopics topics = new RunTopics("differs.");
        List<TopicSettings> expected = TopicAdministration.ofRun(CONFIG, topics, Set.of(), false);
        create(new NewTopic(topics.rollouts(), 4, (short) 1)
                .configs(Map.of("min.insync.replicas", "2", "retention.ms", "-1")));
        try (TopicAdministration administration = new TopicAdministration(client, CONFIG)) {
            assertThat(administration.differences(expected))
                    .as("one has settings that contradict, the others are missing")
                    .hasSize(expected.size())
                    .last()
                    .satisfies(difference -> assertThat(difference.sentence())
                            .isEqualTo(altering(
                                    topics.rollouts(),
                                    "min.insync.replicas=2, expected at most 1, its replicas, or nothing can be written",
                                    "min.insync.replicas=1")));
            assertThat(administration.differences(expected).get(0).sentence())
                    .isEqualTo("topic differs.run is missing; millrace topics create, with the options that name the"
                            + " run, creates it");
        }
    }

    @Test
    void shouldAcceptAnExistingTopicThatKeepsMore() throws Exception {
        create(new NewTopic("more.rollouts", 4, (short) 1)
                .configs(Map.of("retention.ms", "-1", "max.message.bytes", "9000000")));

        try (TopicAdministration administration = new TopicAdministration(client, CONFIG)) {
            administration.prepareRun(new RunTopics("more."), Set.of());
        }

        assertThat(setting("more.rollouts", "retention.ms")).as("never altered").isEqualTo("-1");
    }

    @Test
    void shouldSayThatTheClusterCannotReplicateSoOften() {
        TopicsConfig three = new TopicsConfig(1, 3, 2, -1, -1, -1, -1, 1 << 20, "_schemas", 30_000);

        assertThatThrownBy(() -> {
                    try (TopicAdministration administration = new TopicAdministration(client, three)) {
                        administration.prepareRun(new RunTopics("three."), Set.of());
                    }
                })
                .isInstanceOf(LogSetupException.class)
                .hasMessageStartingWith("the cluster could not create topic three.")
                .hasMessageContaining("replication factor");
    }

    @Test
    void shouldSayThatNoBrokerAnswers() throws Exception {
        int port;
        try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            port = free.getLocalPort();
        }
        TopicsConfig hasty = new TopicsConfig(1, -1, -1, -1, -1, -1, -1, 1 << 20, "_schemas", 1_000);

        try (TopicAdministration administration =
                new TopicAdministration(Map.of("bootstrap.servers", "127.0.0.1:" + port), hasty)) {
            assertThatThrownBy(administration::requireReachable)
                    .isInstanceOf(LogSetupException.class)
                    .hasMessageStartingWith("no broker answers at bootstrap_servers=127.0.0.1:" + port
                            + " within timeout_ms=1000; start it, or correct the address");
        }
        assertThatThrownBy(() -> new TopicAdministration(Map.of("bootstrap.servers", "no-such-host.invalid:1"), hasty))
                .isInstanceOf(LogSetupException.class)
                .hasMessageStartingWith("cannot connect to bootstrap_servers=no-such-host.invalid:1: ");
    }

    private static void assertRefused(String prefix, String setting, String sentence) {
        RunTopics topics = new RunTopics(prefix);
        try (TopicAdministration administration = new TopicAdministration(client, CONFIG)) {
            assertThatThrownBy(() -> administration.prepareRun(topics, Set.of()))
                    .isInstanceOf(LogSetupException.class)
                    .hasMessage(
                            sentence
                                    + ", or change the setting under 'topics' in the configuration, or choose another topic prefix");
            assertThat(administration.differences(TopicAdministration.ofRun(CONFIG, topics, Set.of(), false)))
                    .filteredOn(difference -> !difference.setting().equals("topic"))
                    .first()
                    .satisfies(difference -> {
                        assertThat(difference.setting()).isEqualTo(setting);
                        assertThat(difference.sentence()).isEqualTo(sentence);
                    });
        }
    }

    private static void create(NewTopic topic) throws Exception {
        try (TopicAdministration administration = new TopicAdministration(client, CONFIG)) {
            Map<String, String> settings = topic.configs() == null ? Map.of() : topic.configs();
            administration.prepare(List.of(new TopicSettings(topic.name(), topic.numPartitions(), settings)));
        }
    }

    private static String setting(String topic, String key) throws Exception {
        try (Admin admin = Admin.create(client)) {
            ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
            Config config = admin.describeConfigs(List.of(resource))
                    .all()
                    .get(90, TimeUnit.SECONDS)
                    .get(resource);
            return config.get(key).value();
        }
    }

    private static int partitions(String topic) throws Exception {
        try (Admin admin = Admin.create(client)) {
            return admin.describeTopics(List.of(topic))
                    .allTopicNames()
                    .get(90, TimeUnit.SECONDS)
                    .get(topic)
                    .partitions()
                    .size();
        }
    }
}
