package dev.millrace.runtime.rights;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.log.run.ClusterRuns;
import dev.millrace.log.run.ClusterRuns.ClusterRun;
import dev.millrace.log.run.LogSetupException;
import dev.millrace.log.run.RoleRights;
import dev.millrace.log.run.RunLog;
import dev.millrace.log.run.TopicsConfig;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.errors.AuthorizationException;
import org.apache.kafka.common.resource.ResourcePattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The lists of {@link RoleRights} are enough to stop and to delete a run, and show nothing of another one. */
@Timeout(900)
class DeleteRightsIT {
    private static final String STOPPER = RoleRights.STOP.lowerCase();
    private static final String CLEANER = RoleRights.DELETE.lowerCase();
    private static final TopicsConfig CONFIG = TopicsConfig.defaults();
    private static final RunTopics RUN = new RunTopics("millrace.my-run.");

    @TempDir
    private Path directory;

    private static void grant(Admin admin, RoleRights account) throws Exception {
        admin.createAcls(account.of(RUN, CONFIG.schemasTopic()).stream()
                        .flatMap(right -> right.single().stream())
                        .map(right -> new AclBinding(
                                new ResourcePattern(right.type(), right.names().get(0), right.pattern()),
                                new AccessControlEntry(
                                        "User:" + account.lowerCase(),
                                        "*",
                                        right.operations().get(0),
                                        AclPermissionType.ALLOW)))
                        .toList())
                .all()
                .get();
    }

    private static void begin(Map<String, Object> client, RunTopics topics, String id) {
        RunLog.open(client, topics, new RunIdentity(id, 0, "default"), CONFIG, "", Clock.systemUTC())
                .close();
    }

    @Test
    void shouldStopAndDeleteARunUnderExactlyTheirLists() throws Exception {
        Clock later = Clock.offset(Clock.systemUTC(), Duration.ofMinutes(5));
        try (SecuredBroker broker = new SecuredBroker(directory, STOPPER, CLEANER);
                Admin admin = Admin.create(broker.client("admin"))) {
            begin(broker.client("admin"), RUN, "my-run");
            begin(broker.client("admin"), new RunTopics("millrace.other."), "other");
            admin.alterConsumerGroupOffsets(
                            RUN.prefix() + "generator",
                            Map.of(new TopicPartition(RUN.prompts(), 0), new OffsetAndMetadata(1)))
                    .all()
                    .get();
            grant(admin, RoleRights.STOP);
            grant(admin, RoleRights.DELETE);
            try (ClusterRuns runs = new ClusterRuns(broker.client(STOPPER), CONFIG, "", later)) {
                runs.stop(RUN);
                assertThatThrownBy(() -> runs.delete(RUN))
                        .isInstanceOf(LogSetupException.class)
                        .hasMessageContaining("could not delete topic");
            }
            try (ClusterRuns runs = new ClusterRuns(broker.client(CLEANER), CONFIG, "", later)) {
                List<ClusterRun> seen = runs.all();
                assertThat(seen).singleElement().satisfies(run -> {
                    assertThat(run.topics()).isEqualTo(RUN);
                    assertThat(run.bytes()).as("not allowed, and not 0").isEmpty();
                });
                assertThatThrownBy(() -> runs.stop(RUN)).hasRootCauseInstanceOf(AuthorizationException.class);
                runs.delete(RUN);
                assertThat(runs.at(RUN).holdings().isEmpty()).isTrue();
            }
            assertThat(admin.listTopics().names().get())
                    .noneMatch(topic -> topic.startsWith(RUN.prefix()))
                    .anyMatch(topic -> topic.startsWith("millrace.other."));
            try (ClusterRuns all = new ClusterRuns(broker.client("admin"), CONFIG, "", later)) {
                assertThat(all.at(RUN).holdings().isEmpty()).isTrue();
                assertThat(all.at(new RunTopics("millrace.other.")).holdings().subjects())
                        .contains("millrace.other.rollouts-value");
            }
        }
    }
}
