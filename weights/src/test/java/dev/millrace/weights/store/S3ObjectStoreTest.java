package dev.millrace.weights.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.robothy.s3.rest.LocalS3;
import com.robothy.s3.rest.bootstrap.LocalS3Mode;
import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.NoSuchFileException;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInfo;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.core.interceptor.Context;
import software.amazon.awssdk.core.interceptor.ExecutionAttributes;
import software.amazon.awssdk.core.interceptor.ExecutionInterceptor;
import software.amazon.awssdk.core.sync.RequestBody;
import software.amazon.awssdk.http.urlconnection.UrlConnectionHttpClient;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.s3.S3Client;

/** Against an S3 in this process. */
class S3ObjectStoreTest {
    /** printf abcdef | sha256sum */
    private static final String SHA = "bef57ec7f53a6d40beb640a780a639c83bc29ac8a9816f1fc6c5c6dcd93c4721";

    private static final String BUCKET = "weights";
    private static LocalS3 server;
    private static S3Client client;
    private static final List<String> PUT = new CopyOnWriteArrayList<>();

    private String prefix;

    @BeforeAll
    static void start() {
        server = LocalS3.builder().port(-1).mode(LocalS3Mode.IN_MEMORY).build();
        server.start();
        client = S3Client.builder()
                .httpClientBuilder(UrlConnectionHttpClient.builder())
                .endpointOverride(URI.create("http://localhost:" + server.getPort()))
                .region(Region.US_EAST_1)
                .credentialsProvider(StaticCredentialsProvider.create(AwsBasicCredentials.create("key", "secret")))
                .forcePathStyle(true)
                .overrideConfiguration(settings -> settings.addExecutionInterceptor(new ExecutionInterceptor() {
                    @Override
                    public void beforeExecution(
                            Context.BeforeExecution context, ExecutionAttributes executionAttributes) {
                        PUT.add(context.request().getClass().getSimpleName());
                    }
                }))
                .build();
        client.createBucket(request -> request.bucket(BUCKET));
    }

    @AfterAll
    static void stop() {
        client.close();
        server.shutdown();
    }

    @BeforeEach
    void name(TestInfo test) {
        prefix = test.getTestMethod().orElseThrow().getName();
    }

    private S3ObjectStore store(int partBytes) {
        return S3ObjectStore.at("s3://" + BUCKET + "/" + prefix, partBytes, () -> client);
    }

    @Test
    void shouldGiveBackWhatWasPutUnderItsName() throws IOException {
        S3ObjectStore store = store(100);
        URI uri = store.put("run/0/policy/7-weights-x", SHA, content());
        assertThat(uri).hasToString("s3://weights/" + prefix + "/run/0/policy/7-weights-x");
        assertThat(read(store, uri)).isEqualTo("abcdef");
        assertThat(store.nameOf(uri)).isEqualTo("run/0/policy/7-weights-x");
        assertThat(store.list("run/0/policy")).containsExactly(uri);
        assertThat(store.list("run/1")).isEmpty();
    }

    @Test
    void shouldPutWhatIsLargeInParts() throws IOException {
        S3ObjectStore store = store(4); // of abcd and ef
        PUT.clear();
        URI uri = store.put("large", SHA, content());
        assertThat(PUT)
                .containsExactly(
                        "HeadObjectRequest",
                        "CreateMultipartUploadRequest",
                        "UploadPartRequest",
                        "UploadPartRequest",
                        "CompleteMultipartUploadRequest");
        assertThat(read(store, uri)).isEqualTo("abcdef");
    }

    @Test
    void shouldLeaveAnObjectThatIsThereAndReplaceOneOfOtherContent() throws IOException {
        S3ObjectStore store = store(100);
        URI uri = store.put("a", SHA, content());
        var before = client.headObject(request -> request.bucket(BUCKET).key(prefix + "/a"))
                .lastModified();
        store.put("a", SHA, content());
        assertThat(client.headObject(request -> request.bucket(BUCKET).key(prefix + "/a"))
                        .lastModified())
                .isEqualTo(before);

        client.putObject(request -> request.bucket(BUCKET).key(prefix + "/a"), RequestBody.fromString("abcdeX"));
        assertThat(read(store, store.put("a", SHA, content()))).isEqualTo("abcdef");
        assertThat(read(store, uri)).isEqualTo("abcdef");
    }

    @Test
    void shouldPutNothingInPlaceWhenTheContentIsNotWhatItClaims() {
        for (int partBytes : new int[] {4, 100}) {
            S3ObjectStore store = store(partBytes);
            assertThatThrownBy(() -> store.put("a", "0".repeat(64), content()))
                    .isInstanceOf(IOException.class)
                    .hasMessageContaining("should have the SHA-256 0000")
                    .hasMessageContaining(SHA);
            assertThatThrownBy(() -> store.get(URI.create("s3://weights/" + prefix + "/a")))
                    .isInstanceOf(NoSuchFileException.class);
        }
    }

    @Test
    void shouldRemoveAnObjectAndTakeOneThatIsGoneForRemoved() throws IOException {
        S3ObjectStore store = store(100);
        URI uri = store.put("a", SHA, content());
        store.delete(uri);
        store.delete(uri);
        assertThatThrownBy(() -> store.get(uri)).isInstanceOf(NoSuchFileException.class);
    }

    @Test
    void shouldReadNothingOutsideOfTheStore() {
        S3ObjectStore store = store(100);
        for (String uri : List.of(
                "s3://weights/other/a",
                "s3://another/" + prefix + "/a",
                "s3://weights/" + prefix + "/../other/a",
                "file:///etc/passwd")) {
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> store.get(URI.create(uri)))
                    .withMessageContaining("is not in the store s3://weights/" + prefix + "/");
        }
    }

    /** Environment variables are looked at after these, under the same names in capitals. */
    @Test
    void shouldFindEndpointRegionAndCredentialsAsTheSdkDoes() throws IOException {
        Map<String, String> settings = Map.of(
                "aws.endpointUrlS3", "http://localhost:" + server.getPort(),
                "aws.region", "eu-central-1",
                "aws.accessKeyId", "key",
                "aws.secretAccessKey", "secret");
        settings.forEach(System::setProperty);
        try {
            ObjectStore store = ObjectStore.of("s3://" + BUCKET + "/" + prefix).orElseThrow();
            assertThat(read(store, store.put("a", SHA, content()))).isEqualTo("abcdef");
        } finally {
            settings.keySet().forEach(System::clearProperty);
        }
        assertThat(store(100).list("b")).isEmpty();
        assertThat(store(100).put("a", SHA, content())).hasToString("s3://weights/" + prefix + "/a");
    }

    @Test
    void shouldSayWhatIsWrongWithTheBucketInASentence() {
        S3ObjectStore missing = S3ObjectStore.at("s3://no-such-bucket/x", 100, () -> client);
        assertThatThrownBy(() -> missing.put("a", SHA, content()))
                .isInstanceOf(IOException.class)
                .hasMessageStartingWith("s3://no-such-bucket/x/ could not be written as x/a: ");
    }

    @Test
    void shouldRefuseWhatIsNoLocation() {
        for (String location : List.of("s3://", "s3:///x", "s3://UPPER/x", "s3://bucket//x", "s3://bucket/../x")) {
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> ObjectStore.of(location))
                    .withMessage("store must be kafka, a directory as file:///path, or a bucket as s3://bucket/prefix: "
                            + location);
        }
        assertThat(ObjectStore.of("s3://bucket/a/b")).get().hasToString("s3://bucket/a/b/");
        assertThat(ObjectStore.of("s3://bucket")).get().hasToString("s3://bucket/");
    }

    private static List<ByteBuffer> content() {
        return List.of(bytes("abc"), bytes(""), bytes("def"));
    }

    private static ByteBuffer bytes(String text) {
        return ByteBuffer.wrap(text.getBytes(StandardCharsets.UTF_8));
    }

    private static String read(ObjectStore store, URI uri) throws IOException {
        try (InputStream in = store.get(uri)) {
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        }
    }
}
