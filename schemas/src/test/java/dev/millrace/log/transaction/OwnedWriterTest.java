package dev.millrace.log.transaction;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.log.Alarms;
import dev.millrace.log.Patience;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Consumer;
import org.apache.kafka.clients.consumer.MockConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.MockProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.junit.jupiter.api.Test;

/** Who continues and who ends when producers of one transactional id shut each other out, without a broker. */
class OwnedWriterTest {
    private static final TopicPartition RUN = new TopicPartition("millrace.run", 0);

    private final List<MockProducer<byte[], byte[]>> made = new ArrayList<>();
    private final Deque<Consumer<MockProducer<byte[], byte[]>>> faults = new ArrayDeque<>();
    private Optional<String> owner = Optional.empty();
    /** As the offset has it. */
    private long ownersTerm;

    private final Incarnation incarnation = new Incarnation();
    private final TransactionalWriter writer = new TransactionalWriter(
            this::make,
            new OwnerRecord("millrace.learner", RUN.topic(), this::member),
            incarnation,
            new Patience("learner", Duration.ofMinutes(1), new Alarms(), Optional::empty));

    private MockConsumer<byte[], byte[]> member(String group) {
        assertThat(group).isEqualTo("millrace.learner.owner");
        return new MockConsumer<>("earliest") {
            @Override
            public synchronized Map<TopicPartition, OffsetAndMetadata> committed(Set<TopicPartition> of) {
                assertThat(of).containsExactly(RUN);
                return owner.map(text -> Map.of(RUN, new OffsetAndMetadata(ownersTerm, text)))
                        .orElseGet(Map::of);
            }
        };
    }

    private Producer<byte[], byte[]> make() {
        MockProducer<byte[], byte[]> producer =
                new MockProducer<>(true, null, new ByteArraySerializer(), new ByteArraySerializer());
        if (!faults.isEmpty()) {
            faults.remove().accept(producer);
        }
        made.add(producer);
        return producer;
    }

    private MockProducer<byte[], byte[]> last() {
        return made.get(made.size() - 1);
    }

    private static void write(TransactionalWriter writer) {
        writer.write(out -> out.send(new ProducerRecord<>("rollouts", new byte[1])));
    }

    private RuntimeException failure(Runnable attempt) {
        try {
            attempt.run();
            throw new AssertionError("it was to fail");
        } catch (RuntimeException e) {
            return e;
        }
    }

    @Test
    void shouldClaimTheIdOnceInATransactionOfItsOwn() {
        writer.fenceOthers();
        assertThat(last().consumerGroupOffsetsHistory()).hasSize(1);
        assertThat(last().consumerGroupOffsetsHistory().get(0).values())
                .containsExactly(Map.of(RUN, new OffsetAndMetadata(1, incarnation.text(1))));
        owner = Optional.of(incarnation.text(1));
        writer.fenceOthers();
        assertThat(last().consumerGroupOffsetsHistory()).isEmpty();
    }

    @Test
    void shouldGoOnWithAnotherProducerWhereTheBrokerGaveItsTransactionUp() {
        writer.fenceOthers();
        owner = Optional.of(incarnation.text(1));
        last().fenceProducer(); // as after a transaction that was open for too long
        RuntimeException fenced = failure(() -> write(writer));
        assertThat(fenced).isInstanceOf(FencedWriterException.class);

        List<String> looked = new ArrayList<>();
        assertThat(writer.recover(fenced, () -> false, () -> looked.add("place")))
                .isTrue();
        write(writer);

        assertThat(looked).containsExactly("place");
        assertThat(made).hasSize(2);
        assertThat(last().history()).hasSize(1);
    }

    @Test
    void shouldEndWithoutDisturbingWhoeverHasTakenOver() {
        writer.fenceOthers();
        owner = Optional.of("2 somebody (process 7, since noon)");
        last().fenceProducer();
        RuntimeException fenced = failure(() -> write(writer));
        assertThatThrownBy(() -> writer.recover(fenced, () -> false, () -> {}))
                .isInstanceOf(TakenOverException.class)
                .hasMessageStartingWith("millrace.learner: fenced by somebody (process 7, since noon); this one, ");
        assertThat(made).hasSize(1);
    }

    @Test
    void shouldEndWhereAClientThatCommitsNoMetadataHasTakenOver() {
        writer.fenceOthers();
        owner = Optional.of("");
        ownersTerm = 2;
        last().fenceProducer();
        RuntimeException fenced = failure(() -> write(writer));
        assertThatThrownBy(() -> writer.recover(fenced, () -> false, () -> {}))
                .isInstanceOf(TakenOverException.class)
                .hasMessageStartingWith(
                        "millrace.learner: fenced by a client that does not identify itself; this one, ");
        assertThat(made).hasSize(1);
    }

    @Test
    void shouldTakeOverFromAClientThatCommitsNoMetadata() {
        owner = Optional.of("");
        ownersTerm = 6;
        writer.fenceOthers();
        assertThat(incarnation.term()).isEqualTo(7);
    }

    @Test
    void shouldClaimTheIdAgainWhereTheLogHasLostItsClaim() {
        owner = Optional.of("4 somebody");
        writer.fenceOthers();
        assertThat(incarnation.term()).isEqualTo(5);
        for (Optional<String> left : List.of(Optional.of("4 somebody"), Optional.<String>empty())) {
            owner = left; // the tail of the offsets topic is lost
            long before = incarnation.term();
            writer.fenceOthers();
            assertThat(incarnation.term()).isEqualTo(before + 1);
            assertThat(last().consumerGroupOffsetsHistory().get(0).values())
                    .containsExactly(Map.of(RUN, new OffsetAndMetadata(before + 1, incarnation.text(before + 1))));
        }
    }

    @Test
    void shouldTakeOverFromOneThatComesBackWhileItDoesSo() {
        faults.add(producer -> producer.commitTransactionException = new ProducerFencedException("the older is back"));
        writer.fenceOthers();
        assertThat(made).hasSize(2);
        assertThat(last().transactionCommitted()).isTrue();
    }

    @Test
    void shouldTryAgainUntilTheLogAnswersAndItsPlaceIsFound() {
        writer.fenceOthers();
        owner = Optional.of(incarnation.text(1));
        last().commitTransactionException = new TimeoutException("no answer");
        RuntimeException silent = failure(() -> write(writer));
        faults.add(producer -> producer.initTransactionException = new TimeoutException("still none"));
        int[] places = {0};
        assertThat(writer.recover(silent, () -> false, () -> {
                    if (places[0]++ == 0) {
                        throw new TimeoutException("offsets cannot be read yet");
                    }
                }))
                .isTrue();
        assertThat(places[0]).isEqualTo(2);
        assertThat(made).hasSize(4);
        assertThat(made.subList(0, 3)).allMatch(MockProducer::closed);
    }

    @Test
    void shouldGiveUpWhenStopped() {
        writer.fenceOthers();
        assertThat(writer.recover(new TimeoutException("no answer"), () -> true, () -> {}))
                .isFalse();
        assertThat(made).hasSize(1);
    }
}
