package dev.millrace.log.transaction;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.MockConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.MockProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.errors.TopicAuthorizationException;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class TransactionalWriterTest {
    private final List<MockProducer<byte[], byte[]>> made = new ArrayList<>();
    private final TransactionalWriter writer = new TransactionalWriter(this::make);

    private Producer<byte[], byte[]> make() {
        made.add(new MockProducer<>(true, null, new ByteArraySerializer(), new ByteArraySerializer()));
        return made.get(made.size() - 1);
    }

    private MockProducer<byte[], byte[]> last() {
        return made.get(made.size() - 1);
    }

    private static ProducerRecord<byte[], byte[]> record() {
        return new ProducerRecord<>("rollouts", new byte[1]);
    }

    @BeforeEach
    void fenceOthers() {
        writer.fenceOthers();
    }

    @Test
    void shouldCommitWhatTheWorkSendsAndGiveWhatItGives() {
        Map<TopicPartition, OffsetAndMetadata> offsets =
                Map.of(new TopicPartition("prompts", 0), new OffsetAndMetadata(5));
        String given = writer.compute(out -> {
            out.send(record());
            out.sendOffsetsToTransaction(offsets, new MockConsumer<>("earliest").groupMetadata());
            return "done";
        });
        assertThat(given).isEqualTo("done");
        assertThat(last().history()).hasSize(1);
        assertThat(last().consumerGroupOffsetsHistory())
                .containsExactly(
                        Map.of(new MockConsumer<>("earliest").groupMetadata().groupId(), offsets));
        assertThat(last().transactionCommitted()).isTrue();
    }

    @Test
    void shouldAbortAndGoOnWhereTheGroupHasGivenPartitionsAway() {
        CommitFailedException moved = new CommitFailedException();
        assertThatThrownBy(() -> writer.write(out -> {
                    out.send(record());
                    throw moved;
                }))
                .isSameAs(moved);
        assertThat(last().transactionAborted()).isTrue();
        writer.write(out -> out.send(record()));
        assertThat(last().history()).hasSize(1);
        assertThat(made).hasSize(1);
    }

    @Test
    void shouldSayThatItIsFencedWhereverThatStandsAmongTheCauses() {
        last().commitTransactionException = new KafkaException("", new InvalidProducerEpochException("newer"));
        assertThatThrownBy(() -> writer.write(out -> out.send(record()))).isInstanceOf(FencedWriterException.class);
        last().fenceProducer();
        assertThatThrownBy(() -> writer.write(out -> out.send(record())))
                .isInstanceOf(FencedWriterException.class)
                .hasCauseInstanceOf(ProducerFencedException.class);
    }

    @Test
    void shouldNotBelieveACommitWithoutAnAnswerAndGoOnWithAnotherProducer() {
        TimeoutException silence = new TimeoutException("no answer");
        last().commitTransactionException = silence;
        last().abortTransactionException = new IllegalStateException("commit must be retried");
        assertThatThrownBy(() -> writer.write(out -> out.send(record())))
                .isInstanceOf(UncertainCommitException.class)
                .hasMessage("the broker did not say whether a transaction is committed: no answer")
                .hasCause(silence);

        writer.fenceOthers();
        assertThat(made).hasSize(2);
        assertThat(made.get(0).closed()).isTrue();
        assertThat(last().transactionInitialized()).isTrue();
        writer.write(out -> out.send(record()));
        assertThat(last().history()).hasSize(1);
    }

    @Test
    void shouldKnowThatACommitDidNotHappenIfItCouldBeAborted() {
        last().commitTransactionException = new KafkaException("a record was too large");
        assertThatThrownBy(() -> writer.write(out -> out.send(record()))).hasMessage("a record was too large");
        assertThat(last().transactionAborted()).isTrue();
    }

    @Test
    void shouldTellAMissingRightAsItIs() {
        last().commitTransactionException = new TopicAuthorizationException("rollouts");
        last().abortTransactionException = new IllegalStateException();
        assertThatThrownBy(() -> writer.write(out -> out.send(record())))
                .isInstanceOf(TopicAuthorizationException.class);
    }

    @Test
    void shouldCloseAProducerThatCannotTakeOver() {
        TransactionalWriter other = new TransactionalWriter(() -> {
            make();
            last().initTransactionException = new TimeoutException("out of reach");
            return last();
        });
        assertThatThrownBy(other::fenceOthers).hasMessage("out of reach");
        assertThat(last().closed()).isTrue();
    }

    @Test
    void shouldRefuseToWriteBeforeItHasTakenOver() {
        assertThatThrownBy(() -> new TransactionalWriter(this::make).write(out -> {}))
                .isInstanceOf(IllegalStateException.class)
                .hasMessage("nothing can be written before fenceOthers()");
    }
}
