package dev.millrace.weights.store;

import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.file.NoSuchFileException;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Supplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.commons.codec.digest.DigestUtils;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.core.exception.SdkException;
import software.amazon.awssdk.core.sync.RequestBody;
import software.amazon.awssdk.services.s3.S3Client;
import software.amazon.awssdk.services.s3.model.CompletedPart;
import software.amazon.awssdk.services.s3.model.CreateMultipartUploadRequest;
import software.amazon.awssdk.services.s3.model.HeadObjectResponse;
import software.amazon.awssdk.services.s3.model.NoSuchKeyException;
import software.amazon.awssdk.services.s3.model.PutObjectRequest;
import software.amazon.awssdk.services.s3.model.S3Exception;
import software.amazon.awssdk.services.s3.model.S3Object;

/**
 * Stores objects below a prefix in a bucket of S3 or a compatible store.
 *
 * <p>Region, credentials and endpoint come from the AWS SDK's default chain: {@code AWS_REGION},
 * {@code AWS_ACCESS_KEY_ID}, {@code AWS_SECRET_ACCESS_KEY}, {@code AWS_ENDPOINT_URL_S3}, a profile, or the role of the machine;
 * none of them is configuration of the run. Large objects are uploaded in parts. The content hash is stored with the
 * object, so an existing one is not uploaded again.
 */
final class S3ObjectStore implements ObjectStore {
    static final String SCHEME = "s3://";
    private static final String HASH = "millrace-sha256";
    private static final Pattern LOCATION =
            Pattern.compile("s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/([A-Za-z0-9_-][A-Za-z0-9._/-]*?))?/?");
    private static final int NOT_FOUND = 404;
    static final int PART_BYTES = 64 << 20;

    private final String bucket;
    /** Ends in a slash unless it is empty. */
    private final String prefix;

    private final int partBytes;
    private final Supplier<S3Client> clients;
    private @Nullable S3Client client;

    private S3ObjectStore(String bucket, String prefix, int partBytes, Supplier<S3Client> clients) {
        this.bucket = bucket;
        this.prefix = prefix;
        this.partBytes = partBytes;
        this.clients = clients;
    }

    /**
     * @param location as {@code s3://bucket/prefix}
     * @param partBytes part size; larger objects are uploaded in parts; S3 requires at least 5 MiB except for the last
     * @param clients called once, at the first use
     */
    static S3ObjectStore at(String location, int partBytes, Supplier<S3Client> clients) {
        Matcher matcher = LOCATION.matcher(location);
        if (!matcher.matches() || location.indexOf("//", SCHEME.length()) >= 0 || location.contains("..")) {
            throw new IllegalArgumentException(
                    "store must be kafka, a directory as file:///path, or a bucket as s3://bucket/prefix: " + location);
        }
        String below = matcher.group(2);
        return new S3ObjectStore(matcher.group(1), below == null ? "" : below + "/", partBytes, clients);
    }

    private synchronized S3Client client() throws IOException {
        S3Client made = client;
        if (made == null) {
            try {
                made = clients.get();
            } catch (SdkException e) {
                throw failed("used", e);
            }
            client = made;
        }
        return made;
    }

    @Override
    public URI put(String name, String sha256, List<ByteBuffer> content) throws IOException {
        String key = prefix + FileObjectStore.requireName(name);
        long bytes = content.stream().mapToLong(ByteBuffer::remaining).sum();
        S3Client to = client();
        try {
            if (!isThere(to, key, sha256, bytes)) {
                if (bytes <= partBytes) {
                    putWhole(to, key, sha256, content, bytes);
                } else {
                    putParts(to, key, sha256, content);
                }
            }
        } catch (SdkException e) {
            throw failed("written as " + key, e);
        }
        return uri(key);
    }

    private boolean isThere(S3Client in, String key, String sha256, long bytes) {
        try {
            HeadObjectResponse head =
                    in.headObject(request -> request.bucket(bucket).key(key));
            return head.contentLength() == bytes
                    && sha256.equals(head.metadata().get(HASH));
        } catch (S3Exception e) {
            if (e.statusCode() == NOT_FOUND) {
                return false;
            }
            throw e;
        }
    }

    private void putWhole(S3Client to, String key, String sha256, List<ByteBuffer> content, long bytes)
            throws IOException {
        MessageDigest digest = DigestUtils.getSha256Digest();
        content.forEach(part -> digest.update(part.duplicate()));
        requireHash(key, sha256, digest);
        PutObjectRequest request = PutObjectRequest.builder()
                .bucket(bucket)
                .key(key)
                .metadata(Map.of(HASH, sha256))
                .build();
        to.putObject(
                request,
                RequestBody.fromContentProvider(() -> new BuffersStream(content), bytes, "application/octet-stream"));
    }

    private static void requireHash(String key, String sha256, MessageDigest digest) throws IOException {
        String found = HexFormat.of().formatHex(digest.digest());
        if (!found.equals(sha256)) {
            throw new IOException(key + " should have the SHA-256 " + sha256 + ", but its content has " + found
                    + ": it changed while it was written");
        }
    }

    private void putParts(S3Client to, String key, String sha256, List<ByteBuffer> content) throws IOException {
        MessageDigest digest = DigestUtils.getSha256Digest();
        String upload = to.createMultipartUpload(CreateMultipartUploadRequest.builder()
                        .bucket(bucket)
                        .key(key)
                        .metadata(Map.of(HASH, sha256))
                        .build())
                .uploadId();
        boolean isWhole = false;
        try (InputStream in = new BuffersStream(content)) {
            List<CompletedPart> parts = new ArrayList<>();
            for (byte[] part = in.readNBytes(partBytes); part.length > 0; part = in.readNBytes(partBytes)) {
                digest.update(part);
                int number = parts.size() + 1;
                String tag = to.uploadPart(
                                request -> request.bucket(bucket)
                                        .key(key)
                                        .uploadId(upload)
                                        .partNumber(number),
                                RequestBody.fromBytes(part))
                        .eTag();
                parts.add(CompletedPart.builder().partNumber(number).eTag(tag).build());
            }
            requireHash(key, sha256, digest);
            to.completeMultipartUpload(request ->
                    request.bucket(bucket).key(key).uploadId(upload).multipartUpload(all -> all.parts(parts)));
            isWhole = true;
        } finally {
            if (!isWhole) { // unfinished parts cost money
                to.abortMultipartUpload(
                        request -> request.bucket(bucket).key(key).uploadId(upload));
            }
        }
    }

    @Override
    public InputStream get(URI uri) throws IOException {
        String key = key(uri);
        S3Client from = client();
        try {
            return from.getObject(request -> request.bucket(bucket).key(key));
        } catch (NoSuchKeyException e) {
            NoSuchFileException missing = new NoSuchFileException(uri.toString());
            missing.initCause(e);
            throw missing;
        } catch (SdkException e) {
            throw failed("read as " + key, e);
        }
    }

    @Override
    public void delete(URI uri) throws IOException {
        String key = key(uri);
        S3Client in = client();
        try {
            in.deleteObject(request -> request.bucket(bucket).key(key));
        } catch (SdkException e) {
            throw failed("removed as " + key, e);
        }
    }

    @Override
    public List<URI> list(String below) throws IOException {
        String keys = prefix + FileObjectStore.requireName(below) + "/";
        S3Client in = client();
        try {
            return in.listObjectsV2Paginator(request -> request.bucket(bucket).prefix(keys)).contents().stream()
                    .map(S3Object::key)
                    .map(this::uri)
                    .toList();
        } catch (SdkException e) {
            throw failed("listed below " + keys, e);
        }
    }

    @Override
    public URI uriOf(String name) {
        return uri(prefix + FileObjectStore.requireName(name));
    }

    @Override
    public String nameOf(URI uri) {
        return key(uri).substring(prefix.length());
    }

    private URI uri(String key) {
        return URI.create(SCHEME + bucket + "/" + key);
    }

    /** A manifest must not name arbitrary objects that this process may read. */
    private String key(URI uri) {
        String own = SCHEME + bucket + "/" + prefix;
        String text = uri.toString();
        if (!text.startsWith(own)
                || !FileObjectStore.NAME.matcher(text.substring(own.length())).matches()) {
            throw new IllegalArgumentException(
                    uri + " is not in the store " + own + "; give every role of the run the same weights.store");
        }
        return text.substring(SCHEME.length() + bucket.length() + 1);
    }

    private IOException failed(String doing, SdkException cause) {
        return new IOException(this + " could not be " + doing + ": " + cause.getMessage(), cause);
    }

    @Override
    public String toString() {
        return SCHEME + bucket + "/" + prefix;
    }

    /** Streams the bytes of buffers without moving their positions. */
    static final class BuffersStream extends InputStream {
        private final List<ByteBuffer> buffers;
        private int next;

        BuffersStream(List<ByteBuffer> buffers) {
            this.buffers = buffers.stream().map(ByteBuffer::duplicate).toList();
        }

        @Override
        public int read() {
            ByteBuffer from = current();
            return from == null ? -1 : from.get() & 0xff;
        }

        @Override
        public int read(byte[] into, int offset, int length) {
            Objects.checkFromIndexSize(offset, length, into.length);
            if (length == 0) {
                return 0;
            }
            ByteBuffer from = current();
            if (from == null) {
                return -1;
            }
            int count = Math.min(length, from.remaining());
            from.get(into, offset, count);
            return count;
        }

        private @Nullable ByteBuffer current() {
            while (next < buffers.size() && !buffers.get(next).hasRemaining()) {
                next++;
            }
            return next < buffers.size() ? buffers.get(next) : null;
        }
    }
}
