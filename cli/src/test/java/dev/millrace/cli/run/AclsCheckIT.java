package dev.millrace.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.cli.Main;
import dev.millrace.log.deadletter.DeadLetters;
import dev.millrace.log.deadletter.Quarantines;
import dev.millrace.log.run.RoleRights;
import dev.millrace.log.run.RunLog;
import dev.millrace.log.run.TopicsConfig;
import dev.millrace.replay.archive.ArchivedRun;
import dev.millrace.runtime.Millrace;
import dev.millrace.runtime.config.ConfigLayers;
import dev.millrace.runtime.folder.ImportedRun;
import dev.millrace.runtime.rights.SecuredBroker;
import dev.millrace.schemas.Admission;
import dev.millrace.schemas.Quarantine;
import dev.millrace.schemas.rollout.Refusal;
import dev.millrace.schemas.rollout.RefusalReason;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.serde.AvroSerde;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.CleanupMode;
import org.junit.jupiter.api.io.TempDir;

/** Grants what {@code millrace acls} prints and tries it; each command that is no role works under exactly its list. */
@Timeout(900)
class AclsCheckIT {
    private static final String USER = "sampler";
    private static final Map<String, ResourceType> RESOURCES = Map.of(
            "--topic",
            ResourceType.TOPIC,
            "--group",
            ResourceType.GROUP,
            "--transactional-id",
            ResourceType.TRANSACTIONAL_ID);
    private static final String TRAINED = "trained";
    private static final RunTopics TOPICS = new RunTopics("millrace." + TRAINED + ".");
    private static final String PLANNED = "planned";

    @TempDir(cleanup = CleanupMode.NEVER)
    private static Path folder;

    private static SecuredBroker broker;
    private static String address;
    private static Admin admin;

    private record Answer(int status, List<String> lines, String err) {}

    @BeforeAll
    static void start() throws Exception {
        List<String> users = new ArrayList<>(List.of(USER));
        for (RoleRights account : RoleRights.values()) {
            users.add(account.lowerCase());
        }
        broker = new SecuredBroker(folder.resolve("broker"), users.toArray(String[]::new));
        address = String.valueOf(broker.client(USER).get("bootstrap.servers"));
        admin = Admin.create(broker.client("admin"));
    }

    @AfterAll
    static void stop() {
        admin.close();
        broker.close();
    }

    @Test
    void shouldPrintCommandsThatGrantWhatTheAccountLacks() throws Exception {
        Answer lacking = check(USER, RoleRights.GENERATOR, "--run", "r");
        assertThat(lacking.status).as(lacking.toString()).isEqualTo(4);
        assertThat(lacking.lines)
                .contains("missing  READ and DESCRIBE_CONFIGS on topics millrace.r.*")
                .noneMatch(line -> line.startsWith("ok "));
        Answer granted = granted(USER, RoleRights.GENERATOR, lacking, "--run", "r");
        assertThat(granted.lines)
                .contains("ok       READ on groups millrace.r.generator*")
                .anyMatch(line -> line.startsWith("unknown  WRITE on topics millrace.r.rollouts, "))
                .noneMatch(line -> line.startsWith("missing "));
    }

    @Test
    void shouldRunEachCommandUnderExactlyItsList() throws Exception {
        String[] imported;
        try (ArchivedRun archive = new ArchivedRun(ImportedRun.ARCHIVE)) {
            imported = new String[] {
                "--run",
                archive.run().runId(),
                "--topic-prefix",
                archive.topics().prefix()
            };
        }
        grant(RoleRights.IMPORT, imported);
        does(RoleRights.IMPORT, "import", ImportedRun.ARCHIVE.toString());
        lacks(RoleRights.IMPORT, RoleRights.STOP, "DESCRIBE on groups", with(imported, "stop"));

        String[] planned = {"--run", PLANNED};
        grant(RoleRights.TOPICS, planned);
        does(RoleRights.TOPICS, with(planned, "topics", "create"));
        does(RoleRights.TOPICS, with(planned, "topics", "check"));
        lacks(
                RoleRights.TOPICS,
                RoleRights.DELETE,
                "DELETE on topics millrace.planned.*",
                with(planned, "delete", "--yes"));
        grant(RoleRights.DELETE, planned);
        lacks(
                RoleRights.DELETE,
                RoleRights.TOPICS,
                "CREATE on topics millrace.planned.*",
                with(planned, "topics", "check"));
        does(RoleRights.DELETE, with(planned, "delete", "--yes"));
        assertThat(admin.listTopics().names().get()).noneMatch(topic -> topic.startsWith("millrace.planned."));

        train();
        String[] trained = {"--run", TRAINED};
        reads(trained);
        lifts(trained);
        redrives(trained);
        repairs(trained);
        grant(RoleRights.ROLLBACK, trained);
        does(RoleRights.ROLLBACK, with(trained, "rollback", "--to-version", "1"));
        lacks(
                RoleRights.ROLLBACK,
                RoleRights.REDRIVE,
                "WRITE on topics",
                with(trained, "dead-letters", "redrive", "--all"));
    }

    private void train() throws Exception {
        ConfigLayers layers = new ConfigLayers()
                .set("run.id", TRAINED)
                .set("task={kind: sort, digits: 2}")
                .set("admission.batch_sequences=32")
                .set("topology.batch.sequences=32")
                .set("learner.max_steps=2")
                .set("weights.checkpoint_every=1");
        broker.client("admin")
                .forEach((name, value) -> layers.set(
                        name.equals("bootstrap.servers") ? "run.bootstrap_servers" : "kafka." + name,
                        String.valueOf(value)));
        assertThat(new Millrace(layers.resolve())
                        .in(folder.resolve(TRAINED))
                        .run()
                        .summary()
                        .policyVersion())
                .isEqualTo(2);
    }

    private void reads(String... run) throws Exception {
        grant(RoleRights.READER, run);
        does(RoleRights.READER, with(run, "ledger"));
        does(RoleRights.READER, with(run, "lap"));
        does(RoleRights.READER, with(run, "runs"));
        does(RoleRights.READER, with(run, "topics", "list"));
        does(RoleRights.READER, with(run, "repair"));
        does(RoleRights.READER, with(run, "quarantine", "list"));
        Answer doctor = millrace(RoleRights.READER, with(run, "doctor"));
        assertThat(doctor.status).as(doctor.toString()).isNotEqualTo(1);
        lacks(
                RoleRights.READER,
                RoleRights.ROLLBACK,
                "WRITE on transactional ids millrace.trained.*",
                with(run, "rollback", "--to-version", "1"));
    }

    private void lifts(String... run) throws Exception {
        grant(RoleRights.QUARANTINE, run);
        write(log -> {
            Admission entry = Admission.newBuilder()
                    .setRunId(TRAINED)
                    .setEpoch(0)
                    .setQuarantine(new Quarantine("liar", 0L, "log-probs", "they differ"))
                    .build();
            return new ProducerRecord<>(
                    TOPICS.admission(),
                    Quarantines.key("liar").getBytes(StandardCharsets.UTF_8),
                    AvroSerde.of(Admission.class, log.connection().registry())
                            .serializer()
                            .serialize(TOPICS.admission(), entry));
        });
        does(RoleRights.QUARANTINE, with(run, "quarantine", "lift", "liar"));
        lacks(
                RoleRights.QUARANTINE,
                RoleRights.REDRIVE,
                "WRITE on topics",
                with(run, "dead-letters", "redrive", "--all"));
    }

    private void redrives(String... run) throws Exception {
        grant(RoleRights.REDRIVE, run);
        write(log -> DeadLetters.of(
                new ConsumerRecord<>(TOPICS.scores(), 0, 0, new byte[1], new byte[1]),
                Refusal.of(RefusalReason.REWARD, "reward", "it is infinite"),
                log.connection().run(),
                TOPICS.deadLetters()));
        does(RoleRights.REDRIVE, with(run, "dead-letters", "redrive", "--all"));
        lacks(RoleRights.REDRIVE, RoleRights.QUARANTINE, "WRITE on topic", with(run, "quarantine", "lift", "liar"));
    }

    /** As an administrator. */
    private static void write(Function<RunLog, ProducerRecord<byte[], byte[]>> record) throws Exception {
        try (RunLog log = RunLog.find(broker.client("admin"), TOPICS, TopicsConfig.defaults(), "");
                KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(
                        log.connection().producer(Map.of()), new ByteArraySerializer(), new ByteArraySerializer())) {
            producer.send(record.apply(log)).get();
        }
    }

    private void repairs(String... run) throws Exception {
        grant(RoleRights.REPAIR, run);
        admin.alterConsumerGroupOffsets(
                        TOPICS.prefix() + "scorer",
                        Map.of(new TopicPartition(TOPICS.rollouts(), 0), new OffsetAndMetadata(1_000_000)))
                .all()
                .get();
        Answer found = millrace(RoleRights.REPAIR, with(run, "repair"));
        assertThat(found.status).as(found.toString()).isEqualTo(4);
        does(RoleRights.REPAIR, with(run, "repair", "--do", "move-offset"));
        lacks(RoleRights.REPAIR, RoleRights.QUARANTINE, "WRITE on topic", with(run, "quarantine", "lift", "liar"));
    }

    private static String[] with(String[] run, String... command) {
        return Stream.concat(Stream.of(command), Stream.of(run)).toArray(String[]::new);
    }

    private static void does(RoleRights account, String... command) throws Exception {
        Answer answer = millrace(account, command);
        assertThat(answer.status)
                .as(account + " " + List.of(command) + ": " + answer)
                .isZero();
    }

    /** That an account is refused what is another's, with the way out. */
    private static void lacks(RoleRights account, RoleRights needed, String right, String... command) throws Exception {
        Answer answer = millrace(account, command);
        assertThat(answer.status)
                .as(account + " " + List.of(command) + ": " + answer)
                .isEqualTo(1);
        assertThat(answer.err)
                .startsWith("millrace: the account of the " + needed.lowerCase() + " lacks ")
                .contains(right)
                .contains("; grant it: kafka-acls --bootstrap-server " + address + " --add --allow-principal User:");
    }

    /** Grants what is printed for an account, and nothing else. */
    private static void grant(RoleRights account, String... run) throws Exception {
        Answer printed = millrace(account, with(run, "acls", "--role", account.lowerCase()));
        assertThat(printed.status).as(printed.toString()).isZero();
        granted(account.lowerCase(), account, printed, run);
    }

    private static Answer granted(String user, RoleRights account, Answer printed, String... run) throws Exception {
        List<AclBinding> acls = new ArrayList<>();
        printed.lines.stream()
                .filter(line -> line.startsWith("kafka-acls "))
                .forEach(line -> acls.addAll(acls(user, line)));
        admin.createAcls(acls).all().get();
        Answer answer = check(user, account, run);
        for (long until = System.nanoTime() + TimeUnit.MINUTES.toNanos(5);
                answer.status != 0 && System.nanoTime() < until;
                answer = check(user, account, run)) {
            TimeUnit.MILLISECONDS.sleep(100);
        }
        assertThat(answer.status).as(answer.toString()).isZero();
        return answer;
    }

    private static Answer check(String user, RoleRights account, String... run) throws Exception {
        return millrace(user, with(run, "acls", "--check", "--role", account.lowerCase()));
    }

    private static Answer millrace(RoleRights account, String... command) throws Exception {
        return millrace(account.lowerCase(), command);
    }

    private static Answer millrace(String user, String... command) throws Exception {
        StringBuilder settings = new StringBuilder();
        broker.client(user)
                .forEach((name, value) ->
                        settings.append(name).append('=').append(value).append('\n'));
        Path client = Files.writeString(folder.resolve(user + ".properties"), settings);
        StringWriter out = new StringWriter();
        StringWriter err = new StringWriter();
        int status = Main.commandLine()
                .setOut(new PrintWriter(out))
                .setErr(new PrintWriter(err))
                .execute(with(
                        new String[] {"--bootstrap-servers", address, "--command-config", client.toString()}, command));
        return new Answer(status, out.toString().lines().toList(), err.toString());
    }

    /** What the tool of that name makes of its options. */
    private static List<AclBinding> acls(String user, String command) {
        List<String> words = Arrays.asList(command.split(" "));
        PatternType pattern = words.contains("--resource-pattern-type") ? PatternType.PREFIXED : PatternType.LITERAL;
        List<AclBinding> acls = new ArrayList<>();
        for (int resource = 0; resource < words.size(); resource++) {
            if (!RESOURCES.containsKey(words.get(resource))) {
                continue;
            }
            for (int operation = 0; operation < words.size(); operation++) {
                if (words.get(operation).equals("--operation")) {
                    acls.add(new AclBinding(
                            new ResourcePattern(RESOURCES.get(words.get(resource)), words.get(resource + 1), pattern),
                            new AccessControlEntry(
                                    "User:" + user,
                                    "*",
                                    AclOperation.valueOf(words.get(operation + 1)
                                            .replaceAll("(?<=[a-z])(?=[A-Z])", "_")
                                            .toUpperCase(Locale.ROOT)),
                                    AclPermissionType.ALLOW)));
                }
            }
        }
        return acls;
    }
}
