package dev.millrace.runtime.pipeline;

import dev.millrace.generator.environment.text.TextTask;
import dev.millrace.log.ContentTopic;
import dev.millrace.log.LogConnection;
import dev.millrace.log.run.LogSetupException;
import dev.millrace.policy.ort.CacheFolders;
import dev.millrace.policy.tokenizer.TokenizerDirectory;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.config.MillraceConfig;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.apache.kafka.common.errors.AuthorizationException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The tokenizer's files of a run on text: {@code config.json}, {@code generation_config.json}, chat template and {@code
 * tokenizer.json}. The run's configuration has their hashes and the run's log their contents, so that a process needs
 * no shared folder.
 *
 * <p>If the folder {@code task.tokenizer.directory} exists, it is used and missing files are written from it to the
 * log. Otherwise a folder in the user's cache is used.
 */
public final class TokenizerFiles {
    private static final Logger LOG = LoggerFactory.getLogger(TokenizerFiles.class);
    private static final long LOOK_PERIOD_MS = 200;

    private final TextTask task;
    private final TokenizerDirectory folder;
    private final Map<String, String> hashes;
    private final ContentTopic log;
    private final String topic;

    private TokenizerFiles(
            TextTask task, TokenizerDirectory folder, Map<String, String> hashes, ContentTopic log, String topic) {
        this.task = task;
        this.folder = folder;
        this.hashes = hashes;
        this.log = log;
        this.topic = topic;
    }

    /** Tokenizer files of a run; empty if its task is not text or its tokenizer is a plug-in's. */
    public static Optional<TokenizerFiles> of(MillraceConfig config, LogConnection connection) {
        if (config.task() instanceof TextTask text
                && text.tokenizer() instanceof TokenizerDirectory folder
                && !text.files().contents().isEmpty()) {
            return Optional.of(new TokenizerFiles(
                    text,
                    folder,
                    hashes(text.files().contents()),
                    new ContentTopic(connection, config.topics().timeoutMs()),
                    connection.topics().files()));
        }
        return Optional.empty();
    }

    /** Names from the log must not lead out of the folder. */
    private static Map<String, String> hashes(List<String> lines) {
        Map<String, String> hashes = new LinkedHashMap<>();
        for (String line : lines) {
            String[] parts = line.split(" {2}", 2);
            if (parts.length != 2
                    || !parts[0].matches("[0-9a-f]{64}")
                    || !TokenizerDirectory.FILES.contains(parts[1])) {
                throw new ConfigException("task.files.contents must have lines of a SHA-256 and one of "
                        + TokenizerDirectory.FILES + ": '" + line + "'");
            }
            hashes.put(parts[1], parts[0]);
        }
        return hashes;
    }

    public static boolean isHere(TokenizerDirectory folder) {
        return !folder.directory().isEmpty()
                && Files.isRegularFile(Path.of(folder.directory()).resolve(TokenizerDirectory.FILE));
    }

    /**
     * Returns the configuration for a role in this process. Writes local files to the log if it has none; without local files waits for
     * them, since the run's creator writes them just after its claim.
     *
     * @param limit of the wait, which an interrupt ends
     * @param says receives a line about the wait
     * @throws RefusedRequestException if they are not on the log to the end
     */
    public static MillraceConfig forRole(
            MillraceConfig config, LogConnection connection, Duration limit, Consumer<String> says)
            throws InterruptedException {
        Optional<TokenizerFiles> files = of(config, connection);
        if (files.isEmpty()) {
            return config;
        }
        TokenizerFiles run = files.get();
        if (isHere(run.folder)) {
            run.keep();
            return config;
        }
        long deadlineNanos = System.nanoTime() + limit.toNanos();
        for (boolean isFirst = true; ; isFirst = false) {
            Optional<Path> found = run.onLog();
            if (found.isPresent()) {
                return config.withTask(run.task.with(run.folder.in(found.get())));
            }
            if (System.nanoTime() - deadlineNanos > 0) {
                throw run.missing();
            }
            if (isFirst) {
                says.accept("waiting for the run's tokenizer on topic " + run.topic);
            }
            TimeUnit.MILLISECONDS.sleep(LOOK_PERIOD_MS);
        }
    }

    /**
     * Folder with the files for a reader: the configured one if its hashes match, otherwise one in the cache.
     *
     * @throws RefusedRequestException if they are not on the log
     */
    public Path read() {
        if (folder.contents().equals(task.files().contents())) {
            return Path.of(folder.directory());
        }
        return onLog().orElseThrow(this::missing);
    }

    /** Returns the run's task with the folder of {@link #read}. */
    public TextTask readTask() {
        return task.with(folder.in(read()));
    }

    private RefusedRequestException missing() {
        return new RefusedRequestException("the run's tokenizer (" + String.join(", ", new TreeSet<>(hashes.keySet()))
                + ") is neither in " + (folder.directory().isEmpty() ? "a folder here" : folder.directory())
                + " nor complete on topic " + topic
                + "; start a role on a machine that has the files, to write them there, or name a copy: --set"
                + " task.tokenizer.directory=DIR");
    }

    private void keep() {
        if (!folder.contents().equals(task.files().contents())) {
            return; // the tokenizer itself is compared when it is opened
        }
        try {
            Map<String, byte[]> contents = new LinkedHashMap<>();
            for (Map.Entry<String, String> file : hashes.entrySet()) {
                byte[] content = Files.readAllBytes(Path.of(folder.directory()).resolve(file.getKey()));
                contents.put(file.getValue(), content);
            }
            log.keep(contents.values());
        } catch (LogSetupException e) {
            if (!(e.getCause() instanceof AuthorizationException)) {
                throw e;
            }
            LOG.info("the role that created the run writes its tokenizer: {}", e.getMessage());
        } catch (IOException e) {
            throw new RefusedRequestException(
                    "the run's tokenizer cannot be read in " + folder.directory() + ": " + e.getMessage(), e);
        }
    }

    private Optional<Path> onLog() {
        CachedFolder cached = new CachedFolder(CacheFolders.roots(), hashes);
        Optional<Path> there = cached.find();
        if (there.isPresent()) {
            return there;
        }
        Map<String, byte[]> contents = log.find(new HashSet<>(hashes.values()));
        return contents.keySet().containsAll(hashes.values()) ? Optional.of(cached.make(contents)) : Optional.empty();
    }
}
