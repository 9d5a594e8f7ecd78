package dev.millrace.runtime.pipeline;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.robothy.s3.rest.LocalS3;
import com.robothy.s3.rest.bootstrap.LocalS3Mode;
import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.log.LogConnection;
import dev.millrace.log.run.RunLog;
import dev.millrace.log.run.TopicsConfig;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.LoraShape;
import dev.millrace.policy.huggingface.CheckpointDirectory;
import dev.millrace.policy.weights.Dtype;
import dev.millrace.policy.weights.FrozenWeights;
import dev.millrace.policy.weights.LoraAdapter;
import dev.millrace.policy.weights.Weights;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.pipeline.ModelPublication.Plan;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.weights.BrokenVersionPolicy;
import dev.millrace.weights.VersionFacts;
import dev.millrace.weights.VersionHash;
import dev.millrace.weights.VersionWriter;
import dev.millrace.weights.WeightsConfig;
import dev.millrace.weights.store.ObjectStore;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInfo;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import software.amazon.awssdk.http.urlconnection.UrlConnectionHttpClient;
import software.amazon.awssdk.services.s3.S3Client;
import software.amazon.awssdk.services.s3.model.S3Object;

/** Versions of a decoder in bfloat16; in version n, n elements differ from the version before it. */
@Timeout(900)
class ModelPublicationIT {
    private static final DecoderShape SHAPE = new DecoderShape(40, 32, 1, 2, 1, 16, 64, 32, 10_000, 1e-6, true, true);
    private static final WeightsConfig CONFIG = new WeightsConfig(
            "kafka", "", Dtype.BF16, 1, 1, 0, 30_000, BrokenVersionPolicy.STOP, 65_536, 100, 10_000, 10_000);
    private static final String EMBEDDING = "model.embed_tokens.weight";

    @TempDir
    private static Path brokerFolder;

    private static EmbeddedBroker broker;

    @TempDir
    private Path directory;

    private final BlockingQueue<String> said = new LinkedBlockingQueue<>();
    private final Weights weights = Weights.random(SHAPE, 1).as(Dtype.BF16);
    private final List<PolicyVersion> published = new ArrayList<>();
    private RunLog log;
    private LogConnection connection;
    private KafkaProducer<byte[], byte[]> producer;
    private VersionWriter writer;
    private Path folder;
    private boolean adapters;
    private Optional<ObjectStore> copy = Optional.empty();

    @BeforeAll
    static void startBroker() {
        broker = EmbeddedBroker.start(brokerFolder);
    }

    @AfterAll
    static void stopBroker() {
        broker.close();
    }

    @BeforeEach
    void openRun(TestInfo test) {
        folder = directory.resolve("versions");
        open(test.getTestMethod().orElseThrow().getName(), "run-1");
    }

    private void open(String topics, String run) {
        log = RunLog.open(
                Map.of("bootstrap.servers", broker.bootstrapServers()),
                new RunTopics(topics + "."),
                new RunIdentity(run, 0, "policy"),
                TopicsConfig.defaults(),
                "",
                Clock.systemUTC());
        connection = log.connection();
        producer = new KafkaProducer<>(
                connection.producer(Map.of("transactional.id", connection.scoped("learner"))),
                new ByteArraySerializer(),
                new ByteArraySerializer());
        producer.initTransactions();
        writer = new VersionWriter(connection, producer, CONFIG);
    }

    @AfterEach
    void closeRun() {
        producer.close(Duration.ZERO);
        log.close();
    }

    private void publish(int count) {
        for (int i = 0; i < count; i++) {
            int version = published.size();
            for (int element = 0; element < version; element++) {
                float value = weights.tensor(EMBEDDING).get(7 * element);
                weights.tensor(EMBEDDING).put(7 * element, value == 1 ? 2 : 1);
            }
            producer.beginTransaction();
            PolicyVersion manifest = writer.writeWithoutState(
                    new VersionFacts(version, version - 1, "t", 0, 0, 1_000 + version), weights, 0);
            producer.commitTransaction();
            published.add(manifest);
        }
    }

    private ModelPublication publication(int fullEvery, OptionalInt keep) {
        return new ModelPublication(
                connection,
                MillraceConfig.defaults().withRunId("run-1"),
                new Plan(folder, Optional.empty(), fullEvery, keep, adapters, copy));
    }

    private void run(ModelPublication publication, long first) {
        try (publication) {
            publication.run(OptionalLong.of(first), false, said::add);
        }
    }

    private JsonNode json(String name) throws IOException {
        return new ObjectMapper().readTree(folder.resolve(name).toFile());
    }

    private List<String> names() throws IOException {
        try (Stream<Path> all = Files.list(folder)) {
            return all.map(each -> each.getFileName().toString()).sorted().toList();
        }
    }

    @Test
    void shouldWriteOneVersionInThreeWholeAndTheOthersAsDeltas() throws Exception {
        publish(5);
        run(publication(3, OptionalInt.empty()), 0);

        assertThat(names())
                .containsExactly(
                        "0",
                        "0.json",
                        "1",
                        "1.json",
                        "2",
                        "2.json",
                        "3",
                        "3.json",
                        "4",
                        "4.json",
                        "latest.json",
                        "writer.lock");
        assertThat(json("latest.json").toString()).isEqualTo("{\"version\":4,\"manifest\":\"4.json\"}");
        for (int version = 0; version < 5; version++) {
            JsonNode manifest = json(version + ".json");
            boolean full = version == 0 || version == 3;
            String hash = published.get(version).getWeights().getSha256();
            assertThat(manifest.get("version").asLong()).isEqualTo(version);
            assertThat(manifest.get("base_version").toString())
                    .isEqualTo(full ? "null" : Integer.toString(version - 1));
            assertThat(manifest.path("changed_elements").asText()).isEqualTo(full ? "" : Integer.toString(version));
            assertThat(manifest.get("dtype").asText()).isEqualTo("BF16");
            assertThat(manifest.get("log_sha256").asText()).isEqualTo(hash);
            assertThat(manifest.get("sha256").asText()).as("bit for bit").isEqualTo(hash);
            assertThat(manifest.get("published_at_ms").asLong()).isEqualTo(1_000 + version);
            Path of = folder.resolve(Integer.toString(version));
            assertThat(manifest.get("files").properties().stream().map(Map.Entry::getKey))
                    .isEqualTo(
                            full
                                    ? List.of("README.md", "config.json", "model.safetensors")
                                    : List.of("delta.safetensors"));
            for (Map.Entry<String, JsonNode> file : manifest.get("files").properties()) {
                byte[] content = Files.readAllBytes(of.resolve(file.getKey()));
                assertThat(file.getValue().get("bytes").asLong()).isEqualTo(content.length);
                assertThat(file.getValue().get("sha256").asText())
                        .isEqualTo(HexFormat.of()
                                .formatHex(MessageDigest.getInstance("SHA-256").digest(content)));
            }
            if (full) {
                assertThat(VersionHash.of(new CheckpointDirectory(of), Dtype.BF16))
                        .isEqualTo(hash);
            }
        }
        assertThat(said).hasSize(5).element(4).asString().endsWith("4 of 10,656 values changed since version 3");
    }

    @Test
    void shouldGoOnWhereItEndedAndRemoveNoBaseOfAKeptDelta() throws Exception {
        publish(3);
        run(publication(3, OptionalInt.of(1)), 1);
        assertThat(names()).containsExactly("1", "1.json", "2", "2.json", "latest.json", "writer.lock");
        publish(1);
        Files.createDirectories(folder.resolve("3/half"));
        Files.createDirectories(folder.resolve(".3.partial-17"));
        Files.writeString(folder.resolve("3.json.partial"), "{");
        Files.delete(folder.resolve("latest.json"));
        Files.createDirectories(folder.resolve("of-somebody-else"));
        run(publication(3, OptionalInt.of(1)), 1);
        assertThat(json("3.json").get("base_version").asLong())
                .as("against the log's version 2")
                .isEqualTo(2);
        assertThat(json("latest.json").get("version").asLong()).isEqualTo(3);
        assertThat(names())
                .containsExactly(
                        "1", "1.json", "2", "2.json", "3", "3.json", "latest.json", "of-somebody-else", "writer.lock");
        assertThat(folder.resolve("3")).isDirectoryNotContaining("glob:**half");
        run(publication(3, OptionalInt.of(1)), 1);
        assertThat(said).as("nothing is new").hasSize(3);

        publish(2);
        run(publication(3, OptionalInt.of(1)), 1);
        assertThat(names())
                .containsExactly("4", "4.json", "5", "5.json", "latest.json", "of-somebody-else", "writer.lock");
        assertThat(json("4.json").get("base_version").isNull()).isTrue();
        assertThat(said).element(3).asString().endsWith("full, and 3 older versions are removed");
    }

    @Test
    void shouldFollowUntilItIsStopped() throws Exception {
        try (ModelPublication publication = publication(10, OptionalInt.empty())) {
            CompletableFuture<Void> following =
                    CompletableFuture.runAsync(() -> publication.run(OptionalLong.empty(), true, said::add));
            publish(1);
            assertThat(said.poll(90, TimeUnit.SECONDS)).startsWith("version 0 is in ");
            publish(2);
            assertThat(said.poll(90, TimeUnit.SECONDS)).startsWith("version 1 is in ");
            assertThat(said.poll(90, TimeUnit.SECONDS)).startsWith("version 2 is in ");
            publication.stop();
            following.get(90, TimeUnit.SECONDS);
        }
    }

    @Test
    void shouldFollowOnWhileTheCopyCannotBeWritten() throws Exception {
        Path place = directory.resolve("place");
        copy = ObjectStore.of(place.toUri().toString());
        try (ModelPublication publication = publication(1, OptionalInt.of(1))) {
            CompletableFuture<Void> following =
                    CompletableFuture.runAsync(() -> publication.run(OptionalLong.empty(), true, said::add));
            publish(1);
            assertThat(said.poll(90, TimeUnit.SECONDS)).startsWith("version 0 is in ");
            Path inTheWay = Files.writeString(place.resolve("1"), "no folder");
            publish(1);
            assertThat(said.poll(90, TimeUnit.SECONDS))
                    .startsWith("cannot copy version 1 to ")
                    .endsWith("; " + folder + " has it, and it is tried again until it succeeds");
            assertThat(said.poll(90, TimeUnit.SECONDS))
                    .as("what the copy lacks stays")
                    .startsWith("version 1 is in ")
                    .doesNotContain("removed");
            Files.delete(inTheWay);
            assertThat(said.poll(90, TimeUnit.SECONDS)).endsWith(" has all versions up to 1 again");
            assertThat(place.resolve("1/model.safetensors"))
                    .hasSameBinaryContentAs(folder.resolve("1/model.safetensors"));
            publish(1);
            assertThat(said.poll(90, TimeUnit.SECONDS)).endsWith(", and 2 older versions are removed");
            assertThat(place.resolve("1.json")).doesNotExist();
            publication.stop();
            following.get(90, TimeUnit.SECONDS);
        }
        assertThat(names()).containsExactly("2", "2.json", "latest.json", "writer.lock");
    }

    @Test
    void shouldLeaveOutWhatTheLogNoLongerHas() throws Exception {
        publish(4);
        try (Admin admin = Admin.create(connection.admin())) {
            admin.deleteRecords(Map.of(
                            new TopicPartition(connection.topics().weights(), 0),
                            RecordsToDelete.beforeOffset(
                                    published.get(2).getWeights().getFirstOffset())))
                    .all()
                    .get(90, TimeUnit.SECONDS);
        }
        run(publication(10, OptionalInt.empty()), 0);
        assertThat(said.poll()).startsWith("version 0 is left out: version 0 is no longer kept");
        assertThat(said.poll()).startsWith("version 1 is left out: version 1 is no longer kept");
        assertThat(json("2.json").get("base_version").isNull()).isTrue();
        assertThat(json("3.json").get("base_version").asLong()).isEqualTo(2);
        run(publication(10, OptionalInt.empty()), 1); // the folder says where it continues
        assertThat(said).hasSize(2);
        assertThatThrownBy(() -> run(publication(10, OptionalInt.empty()), 9))
                .isInstanceOf(RefusedRequestException.class)
                .hasMessage(folder + " goes up to version 3 and continues with the next, not with version 9;"
                        + " leave --from-version out, or name a new folder");
    }

    @Test
    void shouldRefuseASecondWriterAndAFolderOfSomethingElse() throws Exception {
        publish(2);
        try (ModelPublication first = publication(3, OptionalInt.empty())) {
            assertThatThrownBy(() -> publication(3, OptionalInt.empty()))
                    .isInstanceOf(RefusedRequestException.class)
                    .hasMessage(
                            "another process writes versions to " + folder + "; stop that one, or name another folder");
            first.run(OptionalLong.empty(), false, said::add);
        }
        Path manifest = folder.resolve("1.json");
        String text = Files.readString(manifest);
        String hash = published.get(1).getWeights().getSha256();
        Files.writeString(manifest, text.replace("\"log_sha256\" : \"" + hash, "\"log_sha256\" : \"00"));
        assertThatThrownBy(() -> run(publication(3, OptionalInt.empty()), 0))
                .isInstanceOf(RefusedRequestException.class)
                .hasMessage(folder + " goes up to version 1, and the run's version 1 has the weights " + hash
                        + " and not 00: the log lost versions; name a new folder");
        Files.writeString(manifest, text.replace("run-1", "run-2"));
        assertThatThrownBy(() -> publication(3, OptionalInt.empty()))
                .isInstanceOf(RefusedRequestException.class)
                .hasMessage(
                        manifest + " is of run run-2 epoch 0 policy policy in format 1, and this is run run-1 epoch 0"
                                + " policy policy in format 1; name another folder");
        folder = Files.createDirectories(directory.resolve("mine"));
        Files.createDirectories(folder.resolve("2024"));
        assertThatThrownBy(() -> publication(3, OptionalInt.empty()))
                .isInstanceOf(RefusedRequestException.class)
                .hasMessage(folder + " is not empty and holds no versions; name a new or empty folder");
        assertThat(names()).containsExactly("2024");
    }

    @Test
    void shouldEndWithASentenceWhereTheDiskIsFull() throws Exception {
        assumeTrue(Files.exists(Path.of("/dev/full")), "this system has no /dev/full");
        publish(2);
        run(publication(10, OptionalInt.empty()), 0);
        publish(1);
        ModelPublication full = publication(10, OptionalInt.empty());
        Files.createSymbolicLink(folder.resolve("2.json.partial"), Path.of("/dev/full"));
        assertThatThrownBy(() -> run(full, 0))
                .isInstanceOf(RefusedRequestException.class)
                .hasMessage("cannot write version 2 to " + folder
                        + ": No space left on device; it holds whole versions up to 1; make room or give a smaller --keep,"
                        + " then start again");
        assertThat(json("latest.json").get("version").asLong()).isEqualTo(1);
        assertThat(folder.resolve("2.json")).doesNotExist();

        run(publication(10, OptionalInt.empty()), 0);
        assertThat(json("latest.json").get("version").asLong()).isEqualTo(2);
        assertThat(json("2.json").get("base_version").asLong()).isEqualTo(1);
        assertThat(names()).noneMatch(name -> name.endsWith(".partial"));
    }

    @Test
    void shouldCopyToABucketWhatItLacksAndRemoveWhatTheFolderRemoves() throws Exception {
        LocalS3 server = LocalS3.builder().port(-1).mode(LocalS3Mode.IN_MEMORY).build();
        server.start();
        Map<String, String> settings = Map.of(
                "aws.endpointUrlS3", "http://localhost:" + server.getPort(),
                "aws.region", "us-east-1",
                "aws.accessKeyId", "key",
                "aws.secretAccessKey", "secret");
        settings.forEach(System::setProperty);
        try (S3Client client = S3Client.builder()
                .httpClientBuilder(UrlConnectionHttpClient.builder())
                .forcePathStyle(true)
                .build()) {
            client.createBucket(request -> request.bucket("published"));
            publish(2);
            run(publication(3, OptionalInt.of(1)), 0);
            copy = ObjectStore.of("s3://published/my-run");
            run(publication(3, OptionalInt.of(1)), 0);
            requireCopied(client);
            publish(2);
            run(publication(3, OptionalInt.of(1)), 0);
            requireCopied(client);
            assertThat(names()).containsExactly("3", "3.json", "latest.json", "writer.lock");

            folder = directory.resolve("of-another-run");
            closeRun();
            open("another", "run-2");
            assertThatThrownBy(() -> {
                        published.clear();
                        publish(1);
                        run(publication(3, OptionalInt.empty()), 0);
                    })
                    .isInstanceOf(RefusedRequestException.class)
                    .hasMessageStartingWith("s3://published/my-run/3.json is of run run-1 ");
            assertThat(json("0.json").path("run_id").asText())
                    .as("the folder is its own")
                    .isEqualTo("run-2");
        } finally {
            settings.keySet().forEach(System::clearProperty);
            server.shutdown();
        }
    }

    /** Names and bytes are those of the folder. */
    private void requireCopied(S3Client client) throws IOException {
        List<String> keys = client.listObjectsV2(request -> request.bucket("published")).contents().stream()
                .map(S3Object::key)
                .toList();
        try (Stream<Path> all = Files.walk(folder)) {
            assertThat(keys)
                    .containsExactlyInAnyOrderElementsOf(all.filter(Files::isRegularFile)
                            .map(each -> "my-run/" + folder.relativize(each))
                            .filter(each -> !each.endsWith(".lock"))
                            .toList());
        }
        for (String key : keys) {
            assertThat(client.getObject(request -> request.bucket("published").key(key))
                            .readAllBytes())
                    .as(key)
                    .isEqualTo(Files.readAllBytes(folder.resolve(key.substring("my-run/".length()))));
        }
    }

    @Test
    void shouldSayThatTheFolderHasWhatCannotBeCopied() throws Exception {
        publish(1);
        Path place = directory.resolve("place");
        copy = ObjectStore.of(place.toUri().toString());
        Files.writeString(place, "no folder");
        assertThatThrownBy(() -> run(publication(3, OptionalInt.empty()), 0))
                .isInstanceOf(RefusedRequestException.class)
                .hasMessageStartingWith("cannot copy version 0 to file://")
                .hasMessageEndingWith("; " + folder + " has it, and the next start tries again");
        Files.delete(place);
        run(publication(3, OptionalInt.empty()), 0);
        assertThat(place.resolve("latest.json")).hasSameBinaryContentAs(folder.resolve("latest.json"));
        assertThat(place.resolve("0/model.safetensors")).hasSameBinaryContentAs(folder.resolve("0/model.safetensors"));
    }

    @Test
    void shouldPublishAdaptersByThemselves() throws Exception {
        publish(1);
        FrozenWeights base =
                new FrozenWeights(weights.copy(), published.get(0).getWeights().getSha256());
        LoraShape shape = new LoraShape(2, 4, List.of("q_proj"));
        for (int version = 1; version <= 2; version++) {
            LoraAdapter adapter = LoraAdapter.initial(shape, base, version);
            producer.beginTransaction();
            published.add(writer.writeWithoutState(
                    new VersionFacts(version, version - 1, "t", 0, 0, 1_000 + version),
                    weights.copy().with(adapter),
                    0));
            producer.commitTransaction();
        }
        adapters = true;
        run(publication(10, OptionalInt.empty()), 0);
        assertThat(said.poll()).isEqualTo("version 0 is left out: it is the base of the run's adapters");
        assertThat(names()).containsExactly("1", "1.json", "2", "2.json", "latest.json", "writer.lock");
        JsonNode manifest = json("2.json");
        assertThat(manifest.get("adapter").asBoolean()).isTrue();
        assertThat(manifest.get("base_version").isNull()).isTrue();
        assertThat(manifest.get("files").properties().stream().map(Map.Entry::getKey))
                .containsExactly("README.md", "adapter_config.json", "adapter_model.safetensors");
        byte[] file = Files.readAllBytes(folder.resolve("2/adapter_model.safetensors"));
        int begin = Long.BYTES
                + (int) ByteBuffer.wrap(file).order(ByteOrder.LITTLE_ENDIAN).getLong();
        byte[] tensors = Arrays.copyOfRange(file, begin, file.length);
        assertThat(manifest.get("sha256").asText())
                .as("over the tensors' bytes, as the log has it")
                .isEqualTo(HexFormat.of()
                        .formatHex(MessageDigest.getInstance("SHA-256").digest(tensors)))
                .isEqualTo(published.get(2).getWeights().getSha256());

        adapters = false;
        assertThatThrownBy(() -> publication(10, OptionalInt.empty()))
                .isInstanceOf(RefusedRequestException.class)
                .hasMessage(folder.resolve("1.json") + " is an adapter, and a folder holds either adapters or merged"
                        + " versions; give --adapter, or name another folder");
    }

    @Test
    void shouldSayThatThereIsNoVersionYet() {
        assertThatThrownBy(() -> run(publication(3, OptionalInt.empty()), 0))
                .isInstanceOf(RefusedRequestException.class)
                .hasMessage("the run has published no version yet; --follow waits for the first");
        publish(1);
        assertThatThrownBy(() -> run(publication(3, OptionalInt.empty()), 4))
                .isInstanceOf(RefusedRequestException.class)
                .hasMessage("version 4 is not published yet; the newest is 0");
    }
}
