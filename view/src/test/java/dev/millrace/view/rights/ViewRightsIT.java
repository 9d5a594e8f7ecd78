package dev.millrace.view.rights;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.millrace.gateway.HttpConfig;
import dev.millrace.log.run.TopicsConfig;
import dev.millrace.replay.archive.ArchivedRun;
import dev.millrace.runtime.config.ConfigLayers;
import dev.millrace.runtime.folder.ImportedRun;
import dev.millrace.runtime.report.AuditedRun;
import dev.millrace.runtime.rights.SecuredBroker;
import dev.millrace.view.RecordedArchive;
import dev.millrace.view.follow.RunSource;
import dev.millrace.view.follow.ViewedRuns;
import dev.millrace.view.http.ReportShelf;
import dev.millrace.view.http.ViewServer;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.CleanupMode;
import org.junit.jupiter.api.io.TempDir;

/** As docs/how-to/view.md promises, read access to a run's topics and schemas suffices for every page, and the view writes nothing. */
@Timeout(900)
class ViewRightsIT {
    private static final HttpClient CLIENT = HttpClient.newHttpClient();
    private static final String READER = "reader";
    private static final String RUN = "recorded";

    @TempDir(cleanup = CleanupMode.NEVER) // the broker's, which outlives a test
    private static Path folder;

    private static SecuredBroker broker;
    private static String prefix;

    @BeforeAll
    static void open() throws Exception {
        broker = new SecuredBroker(folder.resolve("broker"), READER);
        ImportedRun.onto(broker.client("admin"));
        try (ArchivedRun archive = new ArchivedRun(RecordedArchive.FOLDER)) {
            prefix = archive.topics().prefix();
        }
        try (Admin admin =
                Admin.create(broker.client("admin"))) { // on any cluster that is not new, a group was requested before
            admin.listConsumerGroupOffsets(prefix + "learner")
                    .partitionsToOffsetAndMetadata()
                    .get();
        }
        allow(ResourceType.TOPIC, PatternType.PREFIXED, prefix, AclOperation.READ);
        allow(ResourceType.TOPIC, PatternType.LITERAL, TopicsConfig.defaults().schemasTopic(), AclOperation.READ);
    }

    @AfterAll
    static void close() {
        broker.close();
    }

    private static void allow(ResourceType kind, PatternType pattern, String name, AclOperation operation)
            throws Exception {
        try (Admin admin = Admin.create(broker.client("admin"))) {
            admin.createAcls(List.of(new AclBinding(
                            new ResourcePattern(kind, name, pattern),
                            new AccessControlEntry("User:" + READER, "*", operation, AclPermissionType.ALLOW))))
                    .all()
                    .get();
        }
    }

    private static AuditedRun opened() {
        return AuditedRun.open(
                recorded -> {
                    ConfigLayers layers = new ConfigLayers()
                            .begunWith(recorded)
                            .set("run.id", RUN)
                            .set("run.topic_prefix", prefix);
                    broker.client(READER)
                            .forEach((name, value) -> layers.set(
                                    name.equals("bootstrap.servers") ? "run.bootstrap_servers" : "kafka." + name,
                                    String.valueOf(value)));
                    return layers;
                },
                null,
                false,
                "--run " + RUN,
                true);
    }

    /** Every record and every offset of a group that the cluster holds, by where its log ends. */
    private static Map<String, Long> cluster() throws Exception {
        Map<String, Long> all = new TreeMap<>();
        try (Admin admin = Admin.create(broker.client("admin"))) {
            Map<TopicPartition, OffsetSpec> asked = new HashMap<>();
            admin.describeTopics(admin.listTopics(new ListTopicsOptions().listInternal(true))
                            .names()
                            .get())
                    .allTopicNames()
                    .get()
                    .forEach((topic, described) -> described
                            .partitions()
                            .forEach(partition ->
                                    asked.put(new TopicPartition(topic, partition.partition()), OffsetSpec.latest())));
            admin.listOffsets(asked)
                    .all()
                    .get()
                    .forEach((partition, end) -> all.put(partition.toString(), end.offset()));
            admin.listGroups().all().get().forEach(group -> all.put("group " + group.groupId(), 0L));
        }
        return all;
    }

    private static JsonNode ask(ViewServer server, String question) throws Exception {
        HttpResponse<String> response = CLIENT.send(
                HttpRequest.newBuilder(URI.create(server.address() + "api/runs/" + RUN + "/" + question))
                        .build(),
                HttpResponse.BodyHandlers.ofString());
        assertThat(response.statusCode()).as(question + ": " + response.body()).isEqualTo(200);
        return new ObjectMapper().readTree(response.body());
    }

    private static ViewServer view(String indexes) {
        return ViewServer.open(
                HttpConfig.defaults(),
                0,
                new ViewedRuns(
                        List.of(new RunSource.Cluster(RUN, ViewRightsIT::opened, "--run " + RUN)),
                        null,
                        folder.resolve(indexes)),
                new ReportShelf(List.of()));
    }

    private static void awaitIndex(ViewServer server) throws Exception {
        while (ask(server, "facts").at("/index/read").asLong() == 0
                || !ask(server, "facts").at("/index/whole").asBoolean()) {
            TimeUnit.MILLISECONDS.sleep(20);
        }
    }

    @Test
    void shouldShowEveryPageToWhoMayOnlyReadTheRunsTopicsAndTheSchemas() throws Exception {
        Map<String, Long> before = cluster();
        try (ViewServer server = view("indexes")) {
            awaitIndex(server);
            assertThat(ask(server, "facts").path("state").asText()).isEqualTo("on a cluster");
            assertThat(ask(server, "steps").path("steps")).hasSize(6);
            assertThat(ask(server, "now").path("newest_version").asLong()).isEqualTo(6);
            assertThat(ask(server, "staleness").path("histogram")).isNotEmpty();
            assertThat(ask(server, "evaluations").path("evaluations")).isEmpty();
            assertThat(ask(server, "rollouts").path("count").asInt()).isEqualTo(372);
            assertThat(ask(server, "points?x=policy_tokens&y=reward").path("points"))
                    .isNotEmpty();
            String id = ask(server, "rollouts?state=masked&limit=1")
                    .at("/rows/0/id")
                    .asText();
            JsonNode rollout = ask(server, "rollout?id=" + id.replace("/", "%2F"));
            assertThat(rollout.path("ids")).isNotEmpty();
            List<String> places = new ArrayList<>();
            rollout.path("events")
                    .forEach(event -> places.add(event.path("place").asText()));
            for (String place : places) {
                assertThat(ask(server, "record?place=" + place)
                                .at("/record/run_id")
                                .asText())
                        .as(place)
                        .isEqualTo(RUN);
            }
            assertThat(ask(server, "redecide?batch=2&as=none")
                            .path("is_as_recorded")
                            .asBoolean())
                    .isTrue();
            assertThat(ask(server, "ledger").path("ends")).isNotEmpty();
            assertThat(ask(server, "account").path("generated").asInt()).isEqualTo(372);
            assertThat(ask(server, "diagnosis").path("steps").asInt()).isGreaterThanOrEqualTo(6);
            assertThat(ask(server, "weights").path("versions")).hasSize(7);
            assertThat(ask(server, "course").path("reward")).hasSize(6);
            assertThat(ask(server, "lags").path("why").asText())
                    .as("what the groups have consumed needs DESCRIBE on them, and the page says so")
                    .isEqualTo("it takes DESCRIBE on groups that begin with " + prefix);
        }
        assertThat(cluster()).as("nothing was written, and no group made").isEqualTo(before);
        allow(ResourceType.GROUP, PatternType.PREFIXED, prefix, AclOperation.DESCRIBE);
        try (ViewServer server = view("more")) {
            awaitIndex(server);
            JsonNode lags = ask(server, "lags");
            assertThat(lags.has("why")).as(lags.toString()).isFalse();
            assertThat(lags.has("behind")).isTrue();
        }
        assertThat(cluster()).as("nor by who may describe the groups").isEqualTo(before);
    }
}
