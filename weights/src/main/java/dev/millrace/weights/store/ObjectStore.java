package dev.millrace.weights.store;

import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Optional;
import software.amazon.awssdk.core.checksums.RequestChecksumCalculation;
import software.amazon.awssdk.core.checksums.ResponseChecksumValidation;
import software.amazon.awssdk.http.urlconnection.UrlConnectionHttpClient;
import software.amazon.awssdk.services.s3.S3Client;

/**
 * Holds weights that are too large for the cluster; the manifest on the log names them by URI (claim check).
 *
 * <p>Millrace needs the guarantees that S3 and similar stores offer: an object appears whole or not at all, can be read
 * as soon as {@link #put} has returned, and is never changed afterwards. An object is stored before the transaction
 * that names it is committed. So a learner that is killed between the two leaves an unreferenced object, which the
 * removal of old versions also removes.
 *
 * <p>Implementations are thread-safe. All roles of a run use the same store.
 */
public interface ObjectStore {

    /**
     * Stores an object durably; an existing object with the same content is left unchanged.
     *
     * @param name    slash-separated, of letters, digits, '-', '_' and '.'
     * @param sha256  of the content, lower-case hex; checked against what is written
     * @param content concatenated parts, from position to limit; positions stay
     * @return URI for {@link #get}
     * @throws IOException if it cannot be stored, or the content has another hash
     */
    URI put(String name, String sha256, List<ByteBuffer> content) throws IOException;

    /**
     * Returns the content of an object, from its beginning; the caller closes it. The store checks nothing; the caller
     * must compare hashes.
     *
     * @throws java.nio.file.NoSuchFileException if there is no such object
     * @throws IllegalArgumentException if the URI is not one of this store
     */
    InputStream get(URI uri) throws IOException;

    /** Removes an object; no error if it is missing. */
    void delete(URI uri) throws IOException;

    /** The objects whose names begin with {@code prefix} and a slash, unfinished ones included, in no order. */
    List<URI> list(String prefix) throws IOException;

    /** The URI of the object that {@link #put} stores, or would store, under the name. */
    URI uriOf(String name);

    /** The name under which the object was put. */
    String nameOf(URI uri);

    /**
     * The store that a configuration names.
     *
     * @param location {@code kafka} for none, a directory as {@code file:///path}, or a bucket as {@code s3://bucket/prefix}
     * @throws IllegalArgumentException if it is none of these
     */
    static Optional<ObjectStore> of(String location) {
        if (location.equals("kafka")) {
            return Optional.empty();
        }
        return Optional.of(
                location.startsWith(S3ObjectStore.SCHEME)
                        ? S3ObjectStore.at(location, S3ObjectStore.PART_BYTES, S3Clients::make)
                        : new FileObjectStore(FileObjectStore.directory(location)));
    }

    /** Clients configured by the environment; see {@link S3ObjectStore}. */
    static final class S3Clients {
        private S3Clients() {}

        static S3Client make() {
            return S3Client.builder()
                    .httpClientBuilder(UrlConnectionHttpClient.builder())
                    // other implementations lack virtual-hosted buckets and some checksums
                    .forcePathStyle(hasOwnEndpoint())
                    .requestChecksumCalculation(RequestChecksumCalculation.WHEN_REQUIRED)
                    .responseChecksumValidation(ResponseChecksumValidation.WHEN_REQUIRED)
                    .build();
        }

        private static boolean hasOwnEndpoint() {
            return System.getenv("AWS_ENDPOINT_URL_S3") != null
                    || System.getenv("AWS_ENDPOINT_URL") != null
                    || System.getProperty("aws.endpointUrlS3") != null
                    || System.getProperty("aws.endpointUrl") != null;
        }
    }
}
