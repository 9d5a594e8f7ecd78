package dev.millrace.cli.audit;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.cli.audit.RunInFolder.Said;
import dev.millrace.log.run.RunLog;
import dev.millrace.log.run.TopicsConfig;
import dev.millrace.schemas.Outcome;
import dev.millrace.schemas.PolicyVersion;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestMethodOrder;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * What {@code millrace repair} advises is entered as it stands, after the fault was done to a run that was trained: training continues,
 * nothing is left to repair, and the ledger adds up. One run, which each fault finds where the one before has left it.
 */
@Tag("faults")
@Timeout(value = 300, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
@TestMethodOrder(MethodOrderer.OrderAnnotation.class)
class FollowedAdviceIT {
    @TempDir
    private static Path folder;

    private RunInFolder run;
    private int steps = 3;

    @BeforeAll
    void train() {
        run = new RunInFolder(folder.resolve("run"));
        run.train(steps);
    }

    /** Without its last manifest, or with all since an offset. */
    private void cut(String topic, long offset) throws IOException {
        CutPartition.from(run.directory().resolve("broker"), "millrace." + topic + "-0", offset);
    }

    private List<ConsumerRecord<byte[], byte[]>> manifests() throws Exception {
        List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        run.look(log ->
                records.addAll(RunInFolder.raw(log, log.connection().topics().policyVersions())));
        return records;
    }

    private Said found(String name) {
        Said said = run.millrace("repair");
        assertThat(said.status()).as(said.toString()).isEqualTo(4);
        assertThat(said.words()).contains(name + ": ");
        return said;
    }

    /** Enters the command that stands there, word for word. */
    private void follow(Said advice, String beginning) {
        String command = advice.out()
                .lines()
                .map(String::strip)
                .filter(line -> line.startsWith(beginning))
                .findFirst()
                .orElseThrow(() -> new AssertionError(advice.out()));
        List<String> words = List.of(command.split(" "));
        Said followed = RunInFolder.said(words.subList(1, words.size()));
        assertThat(followed.status()).as(command + followed).isZero();
    }

    private void goesOn() {
        steps++;
        Said trained = run.train(steps);
        assertThat(trained.words()).contains("to version " + steps);
        Said nothing = run.millrace("repair");
        assertThat(nothing.status()).as(nothing.toString()).isZero();
        Said ledger = run.millrace("ledger");
        assertThat(ledger.status()).as(ledger.toString()).isZero();
        assertThat(ledger.out()).contains("It adds up");
    }

    @Test
    @Order(1)
    void shouldGoOnFromAnOlderVersionWhereTheNewestCannotBeRead() throws Exception {
        List<PolicyVersion> versions = run.versions();
        cut("weights", versions.get(versions.size() - 1).getWeights().getFirstOffset());
        Said advice = found("version-lost");
        follow(advice, "millrace rollback --to-version " + (steps - 1) + " --run-dir ");
        goesOn();
    }

    @Test
    @Order(2)
    void shouldLearnLostVersionsAgain() throws Exception {
        List<ConsumerRecord<byte[], byte[]>> manifests = manifests();
        cut("policy-versions", manifests.get(manifests.size() - 1).offset());
        assertThat(found("versions-lost").words())
                .contains("wait (costs 0.0 trajectory-seconds): the learner trains on batch");
        goesOn();
    }

    @Test
    @Order(3)
    void shouldBeginTheEpochAgainWhereAllItsVersionsAreLost() throws Exception {
        List<PolicyVersion> versions = run.versions();
        int first = (int)
                versions.stream().filter(version -> version.getEpoch() == 0).count();
        cut("policy-versions", manifests().get(first).offset());
        follow(found("chain-lost"), "millrace rollback --to-version ");
        goesOn();
    }

    @Test
    @Order(4)
    void shouldBeginAnEpochWhereATopicWasDeleted() throws Exception {
        run.look(log -> delete(log, log.connection().topics().scores()));
        follow(found("topic-deleted"), "millrace rollback --to-version ");
        goesOn();
    }

    @Test
    @Order(5)
    void shouldBeginAnEpochWhereATopicWasDeletedAndMadeAgain() throws Exception {
        run.look(log -> {
            delete(log, log.connection().topics().prompts());
            RunLog.open(
                            log.connection().clientProperties(),
                            log.connection().topics(),
                            log.connection().run(),
                            TopicsConfig.defaults(),
                            "",
                            Clock.systemUTC())
                    .close();
        });
        found("topic-replaced");
        Said done = run.millrace("repair", "--do", "new-epoch");
        assertThat(done.status()).as(done.toString()).isZero();
        goesOn();
    }

    @Test
    @Order(6)
    void shouldAcceptAnotherClusterInANewEpoch() throws Exception {
        Path properties = run.directory().resolve("broker/meta.properties");
        String text = Files.readString(properties);
        Files.writeString(properties, text.replaceFirst("cluster.id=.*", "cluster.id=AnotherClusterOfOurs00"));
        follow(found("other-cluster"), "millrace rollback --to-version ");
        goesOn();
    }

    private static void delete(RunLog log, String topic) throws Exception {
        try (Admin admin = Admin.create(log.connection().admin())) {
            admin.deleteTopics(List.of(topic)).all().get(90, TimeUnit.SECONDS);
            long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(90);
            while (admin.listTopics().names().get(90, TimeUnit.SECONDS).contains(topic)) {
                assertThat(System.nanoTime())
                        .as("waited for the end of " + topic)
                        .isLessThan(deadline);
            }
        }
    }

    /** Its records are not read again: no rollout is dropped as a duplicate of itself. */
    @Test
    @Order(7)
    void shouldReadOnWhereTheEndOfRolloutsIsLost() throws Exception {
        List<ConsumerRecord<byte[], byte[]>> rollouts = new ArrayList<>();
        run.look(log -> RunInFolder.raw(log, log.connection().topics().rollouts()).stream()
                .filter(record -> record.partition() == 0)
                .forEach(rollouts::add));
        cut("rollouts", rollouts.get(rollouts.size() - 1).offset());

        steps++;
        assertThat(run.train(steps).words()).contains("to version " + steps);

        run.look(log -> assertThat(run.records(log, log.connection().topics().outcomes(), Outcome.class))
                .extracting(Outcome::getReason)
                .doesNotContain("duplicate"));
    }

    /** As a cluster does after {@code offsets.retention.minutes}. */
    private static void deleteGroups(RunLog log, List<String> groups) throws Exception {
        try (Admin admin = Admin.create(log.connection().admin())) {
            admin.deleteConsumerGroups(groups).all().get(90, TimeUnit.SECONDS);
        }
    }

    /** The learner's place is on the training log, admission's in its table, and who owns an id is claimed again. */
    @Test
    @Order(8)
    void shouldGoOnWhereOffsetsOfTheLearnerAreLost() throws Exception {
        run.look(log -> deleteGroups(
                log,
                List.of(
                        log.connection().group("learner"),
                        log.connection().scoped("learner.owner"),
                        log.connection()
                                .scoped("admission-" + log.connection().run().epoch()))));
        goesOn();
    }

    @Test
    @Order(9)
    void shouldRefuseToStartWhereOffsetsAreLostAndGoOnInANewEpoch() throws Exception {
        run.look(log -> deleteGroups(
                log,
                Stream.of("generator", "scorer", "topology", "learner")
                        .map(log.connection()::group)
                        .toList()));
        Said refused = run.millrace("train", "--plain", "--max-steps", Integer.toString(steps + 1));
        assertThat(refused.status()).isEqualTo(1);
        assertThat(refused.err().replaceAll("\\s+", " "))
                .contains(
                        "cannot start the generator, which would repeat all of its work: consumer group millrace.generator")
                .contains("offsets.retention.minutes")
                .contains("millrace repair --do new-epoch --run-dir ");
        Said advice = found("offsets-lost");
        assertThat(advice.words())
                .contains("consumer group millrace.generator")
                .contains("consumer group millrace.scorer")
                .contains("consumer group millrace.topology");
        follow(advice, "millrace rollback --to-version ");
        goesOn();
    }
}
