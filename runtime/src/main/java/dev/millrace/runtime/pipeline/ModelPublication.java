package dev.millrace.runtime.pipeline;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.log.LogConnection;
import dev.millrace.policy.huggingface.CheckpointDirectory;
import dev.millrace.policy.huggingface.CheckpointException;
import dev.millrace.policy.huggingface.CheckpointExport;
import dev.millrace.policy.weights.LoraAdapter;
import dev.millrace.policy.weights.Weights;
import dev.millrace.report.WholeFile;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.pipeline.ModelExport.Done;
import dev.millrace.runtime.pipeline.ModelExport.Start;
import dev.millrace.runtime.train.RunDirectory;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.weights.CorruptVersionException;
import dev.millrace.weights.PolicyFeed;
import dev.millrace.weights.VersionUnavailableException;
import dev.millrace.weights.store.FileObjectStore;
import dev.millrace.weights.store.ObjectStore;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.TreeMap;
import java.util.function.Consumer;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.apache.commons.codec.digest.DigestUtils;
import org.jspecify.annotations.Nullable;

/**
 * Writes the versions of a run into a folder, as immutable files that readers follow without Kafka.
 *
 * <pre>
 * 40/model.safetensors, config.json, ...  a full version: a Hugging Face directory
 * 41/delta.safetensors                    the changes since the previous version in the folder
 * 40.json, 41.json                        manifests, each written after the directory that it describes
 * latest.json                             the newest version, written after its manifest
 * </pre>
 *
 * <p>Directories and files appear by a rename, so a reader that follows manifests sees whole versions only. Leftovers
 * of a kill have no manifest and are removed at the next start. One process writes to a folder at a time.
 *
 * <p>A copy in an object store has the same names. There each version's files are put before its manifest, and that before
 * {@code latest.json}; a removed version loses its manifest first. The folder says what the copy still lacks. While
 * versions are followed, a store that fails after it took the first is tried again until it has the rest.
 *
 * <p>Reads the run's log only. Owned by one thread, except {@link #stop}.
 */
public final class ModelPublication implements AutoCloseable {
    private static final String LATEST = "latest.json";
    private static final String LOCK = "writer.lock";
    private static final int FORMAT = 1;
    private static final long MAPPED_BYTES = 1 << 30;
    private static final Duration WAIT = Duration.ofSeconds(1);
    private static final Pattern VERSION = Pattern.compile("\\d{1,18}");
    private static final Pattern MANIFEST = Pattern.compile("(\\d{1,18})\\.json");
    private static final Pattern PARTIAL =
            Pattern.compile("\\.\\d{1,18}\\.partial-.*|(\\d{1,18}|latest)\\.json\\.partial");
    private static final ObjectMapper JSON = new ObjectMapper();

    /**
     * What is written, and where.
     *
     * @param folder    new, empty or of an earlier publication of the same run
     * @param type      of all tensors, one of {@link CheckpointExport#TYPES}; empty for the versions' own
     * @param fullEvery a full version and then at most this many less one deltas; at least 1
     * @param keep      full versions that are kept with the deltas after them, at least 1; empty for all
     * @param adapters  whether LoRA versions are written as adapters in PEFT's layout, each full, and not merged
     * @param copy      store that gets a copy of the folder; empty for none
     */
    public record Plan(
            Path folder,
            Optional<String> type,
            int fullEvery,
            OptionalInt keep,
            boolean adapters,
            Optional<ObjectStore> copy) {
        public Plan {
            if (fullEvery < 1 || keep.isPresent() && keep.getAsInt() < 1) {
                throw new IllegalArgumentException("fullEvery and keep must be at least 1: " + fullEvery + ", " + keep);
            }
        }
    }

    /** The newest version of the folder, in memory for the next delta. */
    private record Held(long version, Weights weights, CheckpointExport export) {}

    private final LogConnection connection;
    private final MillraceConfig config;
    private final Plan plan;
    private final FileObjectStore files;
    private final FileChannel lock;
    private final TreeMap<Long, JsonNode> manifests = new TreeMap<>();
    private @Nullable Held held;
    private @Nullable Start start;
    /** Newest version that the copy has; -1 before it is known. */
    private long copied = -1;
    /** Whether the last attempt to bring the copy up to date failed. */
    private boolean isCopyBehind;

    private volatile boolean stopped;

    /**
     * Takes the folder over and removes the leftovers of an interrupted writer.
     *
     * @throws RefusedRequestException if another process writes to it, or it holds something else than this run's versions
     */
    public ModelPublication(LogConnection connection, MillraceConfig config, Plan plan) {
        this.connection = connection;
        this.config = config;
        this.plan = plan;
        this.files = new FileObjectStore(plan.folder());
        try {
            Files.createDirectories(plan.folder());
            boolean isKnown = Files.exists(plan.folder().resolve(LOCK));
            if (!isKnown && !list().isEmpty()) {
                throw new RefusedRequestException(
                        plan.folder() + " is not empty and holds no versions; name a new or empty folder");
            }
            this.lock =
                    FileChannel.open(plan.folder().resolve(LOCK), StandardOpenOption.CREATE, StandardOpenOption.WRITE);
            try {
                take();
            } catch (IOException | RuntimeException e) {
                lock.close();
                throw e;
            }
        } catch (IOException e) {
            throw new RefusedRequestException(
                    "cannot use " + plan.folder() + " (" + RunDirectory.reason(e)
                            + "); name a folder that can be written",
                    e);
        }
    }

    private void take() throws IOException {
        FileLock mine = null;
        try {
            mine = lock.tryLock();
        } catch (OverlappingFileLockException e) {
            // of this process
        }
        if (mine == null) {
            throw new RefusedRequestException(
                    "another process writes versions to " + plan.folder() + "; stop that one, or name another folder");
        }
        for (Path each : list()) {
            Matcher matcher = MANIFEST.matcher(name(each));
            if (matcher.matches()) {
                JsonNode manifest = manifest(each);
                if (manifest.path("adapter").asBoolean() != plan.adapters()) {
                    throw new RefusedRequestException(each + (plan.adapters() ? " is no adapter" : " is an adapter")
                            + ", and a folder holds either adapters or merged versions; "
                            + (plan.adapters() ? "leave --adapter out" : "give --adapter")
                            + ", or name another folder");
                }
                manifests.put(Long.valueOf(matcher.group(1)), manifest);
            }
        }
        for (Path each : list()) {
            String name = name(each);
            if (PARTIAL.matcher(name).matches()
                    || VERSION.matcher(name).matches() && !manifests.containsKey(Long.valueOf(name))) {
                WholeFile.delete(each);
            }
        }
        if (!manifests.isEmpty()) {
            writeLatest();
        }
    }

    private JsonNode manifest(Path file) throws IOException {
        return requireOwn(file, JSON.readTree(file.toFile()));
    }

    private JsonNode requireOwn(Object file, JsonNode manifest) {
        RunIdentity run = connection.run();
        if (manifest.path("format").asInt() != FORMAT
                || !manifest.path("run_id").asText().equals(run.runId())
                || manifest.path("epoch").asInt(-1) != run.epoch()
                || !manifest.path("policy_id").asText().equals(run.policyId())) {
            throw new RefusedRequestException(String.format(
                    Locale.ROOT,
                    "%s is of run %s epoch %s policy %s in format %s, and this is run %s epoch %d policy %s in format %d;"
                            + " name another folder",
                    file,
                    manifest.path("run_id").asText(),
                    manifest.path("epoch").asText(),
                    manifest.path("policy_id").asText(),
                    manifest.path("format").asText(),
                    run.runId(),
                    run.epoch(),
                    run.policyId(),
                    FORMAT));
        }
        return manifest;
    }

    /** Ends {@link #run} after the current version. Thread-safe. */
    public void stop() {
        stopped = true;
    }

    /**
     * Writes every version from where the folder ends to the newest, in order.
     *
     * @param first  first version of an empty folder, at least 0; empty for the newest
     * @param follow whether to wait for further versions until {@link #stop}
     * @param says   receives a sentence for each version
     * @throws RefusedRequestException if there is no such version, or it cannot be written; the folder then ends with the
     *     version before it
     */
    public void run(OptionalLong first, boolean follow, Consumer<String> says) {
        OptionalLong last = manifests.isEmpty() ? OptionalLong.empty() : OptionalLong.of(manifests.lastKey());
        if (last.isPresent() && first.isPresent() && first.getAsLong() > last.getAsLong() + 1) {
            throw new RefusedRequestException(plan.folder() + " goes up to version " + last.getAsLong()
                    + " and continues with the next, not with version " + first.getAsLong()
                    + "; leave --from-version out, or name a new folder");
        }
        OptionalLong known = last.isPresent() ? last : first;
        try (PolicyFeed feed = known.isPresent()
                ? PolicyFeed.reaching(known.getAsLong(), connection, config.weights())
                : new PolicyFeed(connection, config.weights())) {
            Optional<PolicyVersion> newest = feed.newestCommitted();
            while (newest.isEmpty() && follow && !stopped) {
                newest = feed.awaitNewerThan(-1, WAIT);
            }
            if (newest.isEmpty()) {
                if (stopped) {
                    return;
                }
                throw new RefusedRequestException("the run has published no version yet; --follow waits for the first");
            }
            copyAll(follow, says);
            long next = last.isPresent()
                    ? last.getAsLong() + 1
                    : first.orElse(newest.get().getVersion());
            if (!follow && last.isEmpty() && next > newest.get().getVersion()) {
                throw new RefusedRequestException("version " + next + " is not published yet; the newest is "
                        + newest.get().getVersion());
            }
            while (true) {
                requireSame(feed, newest.get().getVersion());
                for (; next <= newest.get().getVersion() && !stopped; next++) {
                    publish(feed, next, follow, says);
                }
                if (!follow || stopped) {
                    return;
                }
                newest = feed.awaitNewerThan(next - 1, WAIT).or(feed::newest);
                copyAll(true, says);
                if (newest.isEmpty()) {
                    throw lost("the run has no version any more");
                }
            }
        }
    }

    /** A truncated log, as after a power loss, may have other weights under a number that is in the folder. */
    private void requireSame(PolicyFeed feed, long newest) {
        if (manifests.isEmpty()) {
            return;
        }
        long last = manifests.lastKey();
        if (newest < last) {
            throw lost("the newest of the run is version " + newest);
        }
        try {
            String there = feed.manifest(last).getWeights().getSha256();
            String here = manifests.lastEntry().getValue().path("log_sha256").asText();
            if (!there.equals(here)) {
                throw lost("the run's version " + last + " has the weights " + there + " and not " + here);
            }
        } catch (VersionUnavailableException e) {
            // too old to be known: its number is never reused
        }
    }

    private RefusedRequestException lost(String why) {
        return new RefusedRequestException(plan.folder() + " goes up to version " + manifests.lastKey() + ", and " + why
                + ": the log lost versions; name a new folder");
    }

    private void publish(PolicyFeed feed, long version, boolean follow, Consumer<String> says) {
        PolicyVersion manifest;
        Weights weights;
        try {
            manifest = feed.manifest(version);
            Held base =
                    held == null && !manifests.isEmpty() && !plan.adapters() ? load(feed, manifests.lastKey()) : held;
            weights = feed.load(version, each -> base != null && base.version() == each ? base.weights() : null);
        } catch (VersionUnavailableException | CorruptVersionException e) {
            says.accept("version " + version + " is left out: " + e.getMessage());
            return;
        }
        if (plan.adapters() && weights.adapter().isEmpty()) {
            says.accept("version " + version + " is left out: it is the base of the run's adapters");
            return;
        }
        try {
            String sentence = write(feed, manifest, weights);
            copyAll(follow, says);
            long removed = isCopyBehind ? 0 : removeOld(follow, says);
            says.accept(removed == 0 ? sentence : sentence + ", and " + removed + " older versions are removed");
        } catch (CheckpointException e) {
            throw new RefusedRequestException("cannot write version " + version + ": " + e.getMessage(), e);
        } catch (IOException e) {
            throw new RefusedRequestException(
                    "cannot write version " + version + " to " + plan.folder() + ": " + RunDirectory.reason(e) + "; "
                            + (manifests.isEmpty()
                                    ? "it holds no version yet"
                                    : "it holds whole versions up to " + manifests.lastKey())
                            + "; make room or give a smaller --keep, then start again",
                    e);
        }
    }

    /** Loads the folder's last version from the log as the base of the next delta; null if the log no longer has it. */
    private @Nullable Held load(PolicyFeed feed, long version) {
        try {
            PolicyVersion manifest = feed.manifest(version);
            Weights weights = feed.load(version);
            held = new Held(version, weights, export(feed, manifest, weights));
        } catch (VersionUnavailableException | CorruptVersionException | IOException e) {
            held = null;
        }
        return held;
    }

    private CheckpointExport export(PolicyFeed feed, PolicyVersion manifest, Weights weights) throws IOException {
        if (start == null) {
            start = new ModelExport(connection, config).start(feed, manifest, weights);
        }
        Optional<Path> like = start.isTaken() ? Optional.of(Path.of(start.checkpoint())) : start.files();
        CheckpointExport plain = CheckpointExport.of(weights);
        return (like.isPresent() ? plain.beside(new CheckpointDirectory(like.get())) : plain)
                .as(plan.type().orElse(weights.dtype().name()));
    }

    private String write(PolicyFeed feed, PolicyVersion manifest, Weights weights) throws IOException {
        long version = manifest.getVersion();
        Path directory = plan.folder().resolve(Long.toString(version));
        if (plan.adapters()) {
            return writeAdapter(feed, manifest, weights.adapter().orElseThrow(), directory);
        }
        CheckpointExport export = export(feed, manifest, weights);
        Held base = held;
        OptionalLong changed = OptionalLong.empty();
        if (base != null && sinceFull() < plan.fullEvery()) {
            changed = export.deltaTo(directory, base.export());
        }
        if (changed.isEmpty()) {
            export.to(
                    directory,
                    ModelCard.text(
                            connection.run(),
                            new Done(
                                    manifest,
                                    Objects.requireNonNull(start),
                                    export.types(),
                                    export.bytes(),
                                    weights.dtype(),
                                    false)));
        }
        ObjectNode made = identity(version);
        if (changed.isPresent() && base != null) {
            made.put("base_version", base.version());
            made.put("changed_elements", changed.getAsLong());
        } else {
            made.putNull("base_version");
        }
        made.put("dtype", plan.type().orElse(weights.dtype().name())).put("sha256", export.sha256());
        long bytes = finish(made, manifest, directory);
        held = new Held(version, weights, export);
        return String.format(
                Locale.ROOT,
                "version %d is in %s: %,d bytes, %s",
                version,
                directory,
                bytes,
                changed.isPresent() && base != null
                        ? String.format(
                                Locale.ROOT,
                                "%,d of %,d values changed since version %d",
                                changed.getAsLong(),
                                weights.shape().parameterCount(),
                                base.version())
                        : "full");
    }

    private ObjectNode identity(long version) {
        return JSON.createObjectNode()
                .put("format", FORMAT)
                .put("run_id", connection.run().runId())
                .put("epoch", connection.run().epoch())
                .put("policy_id", connection.run().policyId())
                .put("version", version);
    }

    private String writeAdapter(PolicyFeed feed, PolicyVersion manifest, LoraAdapter adapter, Path directory)
            throws IOException {
        long version = manifest.getVersion();
        Done done = new ModelExport(connection, config).adapterTo(directory, feed, manifest, adapter);
        ObjectNode made = identity(version)
                .putNull("base_version")
                .put("adapter", true)
                .put("dtype", done.own().name())
                .put("sha256", manifest.getWeights().getSha256()); // of an adapter, over the same bytes
        long bytes = finish(made, manifest, directory);
        return String.format(Locale.ROOT, "version %d is in %s: %,d bytes, an adapter", version, directory, bytes);
    }

    /** Completes the manifest by the directory's files, and writes it and {@value #LATEST}; returns the files' bytes. */
    private long finish(ObjectNode made, PolicyVersion manifest, Path directory) throws IOException {
        long version = manifest.getVersion();
        made.put("log_sha256", manifest.getWeights().getSha256()).put("published_at_ms", manifest.getPublishedAtMs());
        long bytes = 0;
        ObjectNode content = made.putObject("files");
        for (Path file : list(directory)) {
            long size = Files.size(file);
            bytes += size;
            try (InputStream in = Files.newInputStream(file)) {
                content.putObject(name(file)).put("bytes", size).put("sha256", DigestUtils.sha256Hex(in));
            }
        }
        put(version + ".json", made);
        manifests.put(version, made);
        writeLatest();
        return bytes;
    }

    /** Puts what the copy lacks. */
    private void copyAll(boolean follow, Consumer<String> says) {
        ObjectStore to = plan.copy().orElse(null);
        if (to == null || manifests.isEmpty() || copied == manifests.lastKey()) {
            return;
        }
        try {
            if (copied < 0) {
                requireOwnCopy(to);
            }
            for (Map.Entry<Long, JsonNode> each :
                    manifests.tailMap(copied, false).entrySet()) {
                String version = Long.toString(each.getKey());
                for (Map.Entry<String, JsonNode> file :
                        each.getValue().path("files").properties()) {
                    copy(
                            to,
                            version + "/" + file.getKey(),
                            file.getValue().path("sha256").asText());
                }
                copy(to, version + ".json");
            }
            copy(to, LATEST);
            copied = manifests.lastKey();
        } catch (IOException e) {
            String failed = "cannot copy version " + manifests.lastKey() + " to " + to + ": " + RunDirectory.reason(e)
                    + "; " + plan.folder() + " has it, and ";
            if (!follow || copied < 0) {
                throw new RefusedRequestException(failed + "the next start tries again", e);
            }
            if (!isCopyBehind) {
                says.accept(failed + "it is tried again until it succeeds");
            }
            isCopyBehind = true;
            return;
        }
        if (isCopyBehind) {
            isCopyBehind = false;
            says.accept(to + " has all versions up to " + copied + " again");
        }
    }

    private void requireOwnCopy(ObjectStore to) throws IOException {
        try (InputStream latest = to.get(to.uriOf(LATEST))) {
            String name = JSON.readTree(latest).path("manifest").asText();
            try (InputStream manifest = to.get(to.uriOf(name))) {
                requireOwn(to + name, JSON.readTree(manifest));
            }
        } catch (NoSuchFileException e) {
            // new, or a removal of all versions was interrupted
        }
    }

    private void copy(ObjectStore to, String name) throws IOException {
        try (InputStream in = Files.newInputStream(plan.folder().resolve(name))) {
            copy(to, name, DigestUtils.sha256Hex(in));
        }
    }

    private void copy(ObjectStore to, String name, String sha256) throws IOException {
        try (FileChannel file = FileChannel.open(plan.folder().resolve(name), StandardOpenOption.READ)) {
            List<ByteBuffer> content = new ArrayList<>();
            for (long at = 0; at < file.size(); at += MAPPED_BYTES) {
                content.add(file.map(FileChannel.MapMode.READ_ONLY, at, Math.min(MAPPED_BYTES, file.size() - at)));
            }
            to.put(name, sha256, content);
        }
    }

    /** Versions from the last full one on. */
    private int sinceFull() {
        int count = 0;
        for (JsonNode each : manifests.descendingMap().values()) {
            count++;
            if (each.path("base_version").isNull()) {
                break;
            }
        }
        return count;
    }

    /** Newest first, so that every version that is still there has its base. */
    private long removeOld(boolean follow, Consumer<String> says) throws IOException {
        List<Long> fulls = manifests.entrySet().stream()
                .filter(each -> each.getValue().path("base_version").isNull())
                .map(Map.Entry::getKey)
                .toList();
        if (plan.keep().isEmpty() || fulls.size() <= plan.keep().getAsInt()) {
            return 0;
        }
        Map<Long, JsonNode> old = new TreeMap<>(
                        manifests.headMap(fulls.get(fulls.size() - plan.keep().getAsInt()), false))
                .descendingMap();
        long removed = 0;
        for (Map.Entry<Long, JsonNode> each : old.entrySet()) {
            long version = each.getKey();
            if (plan.copy().isPresent()) {
                ObjectStore copy = plan.copy().get();
                try {
                    copy.delete(copy.uriOf(version + ".json"));
                    for (Map.Entry<String, JsonNode> file :
                            each.getValue().path("files").properties()) {
                        copy.delete(copy.uriOf(version + "/" + file.getKey()));
                    }
                } catch (IOException e) {
                    String failed = "cannot remove version " + version + " from " + copy + ": " + RunDirectory.reason(e)
                            + "; it is tried again after the next version";
                    if (!follow) {
                        throw new RefusedRequestException(failed, e);
                    }
                    says.accept(failed);
                    return removed;
                }
            }
            Files.deleteIfExists(plan.folder().resolve(version + ".json"));
            manifests.remove(version);
            WholeFile.delete(plan.folder().resolve(Long.toString(version)));
            removed++;
        }
        return removed;
    }

    private void writeLatest() throws IOException {
        put(
                LATEST,
                JSON.createObjectNode()
                        .put("version", manifests.lastKey())
                        .put("manifest", manifests.lastKey() + ".json"));
    }

    private void put(String name, ObjectNode content) throws IOException {
        byte[] text = (content.toPrettyString() + "\n").getBytes(StandardCharsets.UTF_8);
        files.put(name, DigestUtils.sha256Hex(text), List.of(ByteBuffer.wrap(text)));
    }

    private List<Path> list() throws IOException {
        return list(plan.folder());
    }

    private static List<Path> list(Path folder) throws IOException {
        try (Stream<Path> all = Files.list(folder)) {
            return all.sorted().toList();
        }
    }

    private static String name(Path file) {
        return String.valueOf(file.getFileName());
    }

    @Override
    public void close() {
        try {
            lock.close();
        } catch (IOException e) {
            throw new RefusedRequestException("cannot release " + plan.folder() + ": " + RunDirectory.reason(e), e);
        }
    }
}
