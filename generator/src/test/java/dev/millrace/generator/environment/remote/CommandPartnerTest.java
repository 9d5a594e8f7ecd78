package dev.millrace.generator.environment.remote;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.generator.environment.remote.Partners.CommandPartner;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(300)
class CommandPartnerTest {
    /** Whose limits pass when a test says so. */
    private static final class HeldClock extends ScheduledThreadPoolExecutor {
        final List<Runnable> limits = new CopyOnWriteArrayList<>();

        HeldClock() {
            super(1);
        }

        @Override
        public ScheduledFuture<?> schedule(Runnable limit, long delay, TimeUnit unit) {
            limits.add(limit);
            return super.schedule(() -> {}, 0, unit);
        }
    }

    @Test
    void shouldEndAProcessThatHangsAndNotAskItsTurnAgain(@TempDir Path folder) throws Exception {
        Path heard = Files.createFile(folder.resolve("heard"));
        String hangs = "while read -r line; do echo \"$line\" >> " + heard
                + "; case \"$line\" in *step*) sleep 600;; esac; echo \"$line\"; done";
        HeldClock clock = new HeldClock();
        try {
            CommandPartner partner = new CommandPartner(
                    new RemotePlace("", hangs, "", new RemotePlace.Limits(1_500, 3, 0, 1, 4_096)), clock);
            assertThat(partner.ask(question("reset", true)).get(90, TimeUnit.SECONDS))
                    .isEqualTo(question("reset", true).body());

            CompletableFuture<ObjectNode> turn = partner.ask(question("step", false));
            awaitLines(heard, 2);
            clock.limits.get(1).run();
            assertThatThrownBy(() -> turn.get(90, TimeUnit.SECONDS))
                    .hasMessageContaining("gives no answer: it has not answered within 1500 ms (timeout_ms)");
            assertThat(Files.readAllLines(heard))
                    .as("it may have acted on its turn")
                    .hasSize(2);
            assertThatThrownBy(() -> partner.ask(question("step", false)).get(90, TimeUnit.SECONDS))
                    .hasMessageContaining("has ended, and its episodes with it");
        } finally {
            clock.shutdownNow();
        }
    }

    private static Question question(String op, boolean begins) {
        ObjectNode body = JsonNodeFactory.instance.objectNode().put("id", op).put("op", op);
        return new Question(op, body, "one", begins, false);
    }

    private static void awaitLines(Path file, int lines) throws IOException, InterruptedException {
        while (Files.readAllLines(file).size() < lines) {
            TimeUnit.MILLISECONDS.sleep(5);
        }
    }
}
