package dev.millrace.learner;

import dev.millrace.infra.broker.BrokerConfig;
import dev.millrace.infra.broker.EmbeddedBroker;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Objects;
import org.apache.kafka.common.utils.Utils;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/**
 * A broker for the tests of a class, a run's log of its own for each of them, and the result of an undisturbed learner.
 */
final class LearnerRuns implements BeforeAllCallback, BeforeEachCallback, AfterEachCallback, AfterAllCallback {
    private final int batches;
    private @Nullable Path directory;
    private @Nullable EmbeddedBroker broker;
    private List<String> undisturbed = List.of();
    private @Nullable SyntheticLog log;

    private LearnerRuns(int batches) {
        this.batches = batches;
    }

    /** Returns runs whose {@link #undisturbed()} covers this number of batches of six. */
    static LearnerRuns undisturbedOver(int batches) {
        return new LearnerRuns(batches);
    }

    /** The weights' hashes of an undisturbed learner, from version 0 on. */
    List<String> undisturbed() {
        return undisturbed;
    }

    String bootstrapServers() {
        return broker().bootstrapServers();
    }

    /** The test's own run. */
    SyntheticLog log() {
        return Objects.requireNonNull(log);
    }

    /** The broker is stopped, its files are changed, and it is started on the same port, so that clients find it. */
    void whileStopped(FileChange change) throws IOException {
        String address = bootstrapServers();
        int port = Integer.parseInt(address.substring(address.lastIndexOf(':') + 1));
        broker().close();
        Path files = Objects.requireNonNull(directory);
        change.apply(files);
        broker = EmbeddedBroker.start(files, BrokerConfig.defaults().withPort(port));
    }

    @Override
    public void beforeAll(ExtensionContext context) throws IOException {
        directory = Files.createTempDirectory("learner-runs");
        broker = EmbeddedBroker.start(directory);
        try (SyntheticLog quiet = new SyntheticLog(bootstrapServers(), "undisturbed.")) {
            quiet.produce(batches, 6);
            RunningLearner.whenConsumed(quiet, batches);
            undisturbed = quiet.hashes();
        }
    }

    @Override
    public void beforeEach(ExtensionContext context) {
        log = new SyntheticLog(
                bootstrapServers(), context.getRequiredTestMethod().getName() + ".");
    }

    @Override
    public void afterEach(ExtensionContext context) {
        log().close();
    }

    @Override
    public void afterAll(ExtensionContext context) throws IOException {
        broker().close();
        Utils.delete(Objects.requireNonNull(directory).toFile());
    }

    private EmbeddedBroker broker() {
        return Objects.requireNonNull(broker);
    }

    /** What is done to a stopped broker's directory. */
    interface FileChange {
        void apply(Path directory) throws IOException;
    }
}
