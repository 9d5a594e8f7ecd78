package dev.millrace.log.transaction;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.log.LogConnection;
import dev.millrace.log.run.RunLog;
import dev.millrace.log.run.TopicsConfig;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import java.nio.file.Path;
import java.time.Clock;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Two writers of one transactional id on a real broker: only the newer one continues, for any broker response. */
@Timeout(900)
class TakeOverIT {
    private static final String ID = "r.learner";

    @TempDir
    private Path directory;

    private EmbeddedBroker broker;
    private RunLog log;

    @BeforeEach
    void openRun() {
        broker = EmbeddedBroker.start(directory);
        log = RunLog.open(
                Map.of("bootstrap.servers", broker.bootstrapServers()),
                new RunTopics("r."),
                new RunLog.NewRun(
                        new RunIdentity("r", 0, "policy"), new RunTopics("r.").ofPartners(), Optional.empty()),
                TopicsConfig.defaults(),
                "",
                Clock.systemUTC());
    }

    @AfterEach
    void close() {
        log.close();
        broker.close();
    }

    private TransactionalWriter writer() {
        return TransactionalWriter.of(log.connection(), ID, 30_000, Map.of());
    }

    private static void write(LogConnection connection, TransactionalWriter writer) {
        writer.write(out -> out.send(new ProducerRecord<>(connection.topics().rollouts(), new byte[1])));
    }

    @Test
    void shouldEndTheOlderOneAndLetTheNewerGoOnWhoeverTheBrokerShutsOut() throws Exception {
        LogConnection connection = log.connection();
        try (TransactionalWriter older = writer();
                TransactionalWriter newer = writer();
                Admin admin = Admin.create(connection.admin())) {
            older.fenceOthers();
            write(connection, older);
            admin.fenceProducers(List.of(ID)).all().get(); // as with a transaction that was open for too long
            RuntimeException givenUp = catchThrowableOfType(RuntimeException.class, () -> write(connection, older));
            assertThat(givenUp).isInstanceOf(FencedWriterException.class);
            assertThat(older.recover(givenUp, () -> false, () -> {})).isTrue();
            write(connection, older);

            newer.fenceOthers();
            RuntimeException replaced = catchThrowableOfType(RuntimeException.class, () -> write(connection, older));
            assertThatThrownBy(() -> older.recover(replaced, () -> false, () -> {}))
                    .isInstanceOf(TakenOverException.class)
                    .hasMessageStartingWith(ID + ": fenced by ");
            write(connection, newer); // and was not disturbed

            admin.fenceProducers(List.of(ID)).all().get();
            assertThatThrownBy(older::fenceOthers).isInstanceOf(TakenOverException.class);
            RuntimeException fenced = catchThrowableOfType(RuntimeException.class, () -> write(connection, newer));
            assertThat(newer.recover(fenced, () -> false, () -> {})).isTrue();
            write(connection, newer);
        }
    }
}
