package dev.millrace.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.audit.ledger.Account;
import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.schemas.TrainingStep;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.LongStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** A run whose roles, each a process, are replaced one at a time by those of another build, and go back to the first. */
@Tag("builds")
@Timeout(value = 60, unit = TimeUnit.MINUTES)
class RollingUpgradeIT {
    private static final String RUN = "rolling";
    private static final String PREFIX = "millrace." + RUN + ".";
    private static final int MORE_STEPS = 3;
    private static final List<String> SETTINGS = List.of(
            "--set", "goal.mean_reward=0",
            "--set", "learner.max_steps=100000",
            "--set", "admission.batch_sequences=32",
            "--set", "topology.batch.sequences=32");

    private enum Role {
        GENERATE,
        SCORE,
        STREAM,
        ADMIT,
        LEARN
    }

    private static final Path THIS = Path.of("target", "lib").toAbsolutePath();

    @TempDir
    private Path folder;

    private final Map<Role, TrainProcess> running = new EnumMap<>(Role.class);
    private Path other;
    private EmbeddedBroker cluster;

    @BeforeEach
    void findTheOtherBuild() {
        String given = System.getProperty("other.lib");
        assertThat(given)
                .as("-Dother.lib, the folder with the jars of another build")
                .isNotNull();
        other = Path.of(given).toAbsolutePath();
        assertThat(Files.isDirectory(other)).as("a folder: %s", other).isTrue();
        cluster = EmbeddedBroker.start(folder.resolve("cluster"));
    }

    @AfterEach
    void endAll() {
        running.values().forEach(TrainProcess::close);
        cluster.close();
    }

    @Test
    void shouldTrainOnWhileRolesAreUpgradedAndDowngradedOneByOne() throws Exception {
        for (Role role : Role.values()) {
            start(role, other);
        }
        running.get(Role.LEARN).awaitLine("learner of run");
        awaitMoreSteps();
        for (Role role : Role.values()) {
            replace(role, THIS);
        }
        List<Role> backwards = new ArrayList<>(List.of(Role.values()));
        Collections.reverse(backwards);
        for (Role role : backwards) {
            replace(role, other);
        }
        replace(Role.LEARN, THIS);
        for (Role role : Role.values()) {
            stop(role);
        }

        try (LoggedRun run = LoggedRun.on(cluster.bootstrapServers(), RUN, PREFIX)) {
            List<Long> steps = steps(run);
            assertThat(steps)
                    .as("each step once, in order")
                    .isEqualTo(LongStream.rangeClosed(1, steps.size()).boxed().toList());
            Account account = run.account();
            assertThat(account.balance().addsUp()).as(account.toString()).isTrue();
            assertThat(run.records(run.topics().deadLetters())).isEmpty();
        }
        for (Path build : List.of(THIS, other)) {
            assertThat(said(build, "ledger")).contains("It adds up.");
        }
    }

    private static List<Long> steps(LoggedRun run) {
        return run.records(run.topics().trainingLog(), TrainingStep.class).stream()
                .map(TrainingStep::getVersion)
                .sorted()
                .toList();
    }

    private void start(Role role, Path build) {
        List<String> words = new ArrayList<>(List.of(
                role.name().toLowerCase(Locale.ROOT),
                "--bootstrap-servers",
                cluster.bootstrapServers(),
                "--set",
                "run.id=" + RUN));
        if (role == Role.LEARN || role == Role.ADMIT) {
            words.addAll(SETTINGS);
        }
        if (role == Role.STREAM) {
            words.addAll(List.of("--state-dir", folder.resolve("state").toString()));
        }
        running.put(role, TrainProcess.ofBuild(build, folder, words));
    }

    private void stop(Role role) throws InterruptedException {
        TrainProcess process = running.remove(role);
        process.signal("TERM");
        assertThat(process.awaitExit(TrainProcess.PATIENCE))
                .as("%s %s", role, process)
                .isEqualTo(130);
    }

    private void replace(Role role, Path build) throws InterruptedException {
        stop(role);
        start(role, build);
        awaitMoreSteps();
    }

    private void awaitMoreSteps() throws InterruptedException {
        try (LoggedRun run = LoggedRun.on(cluster.bootstrapServers(), RUN, PREFIX)) {
            int wanted = steps(run).size() + MORE_STEPS;
            long deadline = System.nanoTime() + TrainProcess.PATIENCE.toNanos();
            while (steps(run).size() < wanted) {
                assertThat(System.nanoTime())
                        .as("%d steps within %s; %s", wanted, TrainProcess.PATIENCE, running)
                        .isLessThan(deadline);
                Thread.sleep(200);
            }
        }
    }

    private String said(Path build, String command) throws InterruptedException {
        try (TrainProcess process = TrainProcess.ofBuild(
                build, folder, List.of(command, "--run", RUN, "--bootstrap-servers", cluster.bootstrapServers()))) {
            assertThat(process.awaitExit(TrainProcess.PATIENCE))
                    .as("%s", process)
                    .isZero();
            return String.join("\n", process.out());
        }
    }
}
