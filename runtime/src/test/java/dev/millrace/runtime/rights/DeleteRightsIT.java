package dev.millrace.runtime.rights;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.log.run.ClusterRuns;
import dev.millrace.log.run.ClusterRuns.ClusterRun;
import dev.millrace.log.run.RunLog;
import dev.millrace.log.run.TopicsConfig;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The table of rights in docs/how-to/runs.md is enough to delete a run, and shows nothing of another one. */
@Timeout(300)
class DeleteRightsIT {
    private static final String CLEANER = "cleaner";
    private static final TopicsConfig CONFIG = TopicsConfig.defaults();
    private static final RunTopics RUN = new RunTopics("millrace.my-run.");

    @TempDir
    private Path directory;

    private static Stream<AclBinding> may(
            ResourceType type, String name, PatternType pattern, AclOperation... operations) {
        return Stream.of(operations)
                .map(operation -> new AclBinding(
                        new ResourcePattern(type, name, pattern),
                        new AccessControlEntry("User:" + CLEANER, "*", operation, AclPermissionType.ALLOW)));
    }

    private static List<AclBinding> table() {
        return Stream.of(
                        may(
                                ResourceType.TOPIC,
                                RUN.prefix(),
                                PatternType.PREFIXED,
                                AclOperation.READ,
                                AclOperation.DELETE),
                        may(
                                ResourceType.GROUP,
                                RUN.prefix(),
                                PatternType.PREFIXED,
                                AclOperation.DELETE,
                                AclOperation.ALTER_CONFIGS),
                        may(ResourceType.TRANSACTIONAL_ID, RUN.prefix(), PatternType.PREFIXED, AclOperation.DESCRIBE),
                        may(ResourceType.TOPIC, "_schemas", PatternType.LITERAL, AclOperation.READ, AclOperation.WRITE),
                        may(ResourceType.TRANSACTIONAL_ID, "_schemas.writer", PatternType.LITERAL, AclOperation.WRITE))
                .flatMap(each -> each)
                .toList();
    }

    private static void begin(Map<String, Object> client, RunTopics topics, String id) {
        RunLog.open(client, topics, new RunIdentity(id, 0, "default"), CONFIG, "", Clock.systemUTC())
                .close();
    }

    @Test
    void shouldDeleteARunWithTheRightsOfTheTable() throws Exception {
        Clock later = Clock.offset(Clock.systemUTC(), Duration.ofMinutes(5));
        try (SecuredBroker broker = new SecuredBroker(directory, CLEANER);
                Admin admin = Admin.create(broker.client("admin"))) {
            begin(broker.client("admin"), RUN, "my-run");
            begin(broker.client("admin"), new RunTopics("millrace.other."), "other");
            admin.alterConsumerGroupOffsets(
                            RUN.prefix() + "generator",
                            Map.of(new TopicPartition(RUN.prompts(), 0), new OffsetAndMetadata(1)))
                    .all()
                    .get();
            admin.createAcls(table()).all().get();
            try (ClusterRuns runs = new ClusterRuns(broker.client(CLEANER), CONFIG, "", later)) {
                List<ClusterRun> seen = runs.all();
                assertThat(seen).singleElement().satisfies(run -> {
                    assertThat(run.topics()).isEqualTo(RUN);
                    assertThat(run.bytes()).as("not allowed, and not 0").isEmpty();
                });
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
