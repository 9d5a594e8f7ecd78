package dev.millrace.topology.state;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.topology.CanonicalSettings;
import dev.millrace.topology.Fingerprint;
import dev.millrace.topology.state.TaskEvent.Arrivals;
import dev.millrace.topology.state.TaskEvent.Began;
import dev.millrace.topology.state.TaskEvent.BeganAgain;
import dev.millrace.topology.state.TaskEvent.Idled;
import dev.millrace.topology.state.TaskEvent.Lost;
import dev.millrace.topology.state.TaskEvent.Told;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.processor.api.MockProcessorContext;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class JournalTest {
    private static final CanonicalSettings SETTINGS = settings(256);
    private static final CanonicalSettings OTHERS = settings(128);

    private final KeyValueStore<Bytes, byte[]> store = Stores.keyValueStoreBuilder(
                    Stores.inMemoryKeyValueStore("journal"), Serdes.Bytes(), Serdes.ByteArray())
            .withLoggingDisabled()
            .build();

    private static CanonicalSettings settings(int sequences) {
        return new CanonicalSettings(1, new TreeMap<>(Map.of("topology.batch.sequences", "" + sequences)));
    }

    private static Began began(CanonicalSettings settings) {
        return new Began(settings.fingerprint());
    }

    private record Seen(int input, long offset, long... facts) implements Observation {}

    @BeforeEach
    void openStore() {
        store.init(new MockProcessorContext<>().getStateStoreContext(), store);
    }

    private static SeenHeader read(byte[] header) {
        return SeenHeader.of(new RecordHeaders().add(SeenHeader.HEADER, header)).orElseThrow();
    }

    @Test
    void shouldTellWhatHappenedSinceTheRecordBefore() {
        Journal journal = new Journal(store, "join-3", SETTINGS);
        for (int i = 0; i < 100; i++) {
            journal.arrived(new Seen(0, i));
        }
        journal.arrived(new Seen(1, 7));
        journal.arrived(new Seen(1, 9));
        journal.idled(1000, 50_000);
        journal.idled(900, 51_000);
        journal.arrived(new Seen(3, 4, 5, -1, Long.MIN_VALUE));
        SeenHeader first = read(journal.seen(77));
        journal.arrived(new Seen(0, 100));
        SeenHeader second = read(journal.seen(78));
        SeenHeader third = read(journal.seen(78));

        assertThat(first.number()).isZero();
        assertThat(first.activityMs()).isEqualTo(77);
        assertThat(first.positions()).containsExactly(100L, 10L, 0L, 5L);
        assertThat(first.since().subList(0, 4))
                .isEqualTo(List.of(began(SETTINGS), new Arrivals(0, 100), new Arrivals(1, 2), new Idled(1900, 51_000)));
        assertThat(((Told) first.since().get(4)).facts()).containsExactly(5, -1, Long.MIN_VALUE);
        assertThat(second.number()).isEqualTo(1);
        assertThat(second.since()).containsExactly(new Arrivals(0, 1));
        assertThat(third).isEqualTo(new SeenHeader("join-3", 2, 78, second.positions(), List.of(), List.of()));
    }

    @Test
    void shouldGoOnWithWhatItsStoreHoldsAndSayThatItBeganAnew() {
        Journal before = new Journal(store, "join-3", SETTINGS);
        before.seen(0);
        before.arrived(new Seen(0, 5));
        before.idled(10, 20);
        new Journal(store, "join-3", OTHERS);
        Journal after = new Journal(store, "join-3", OTHERS); // and crashed before anything came
        after.arrived(new Seen(0, 6));

        assertThat(read(after.seen(3)))
                .isEqualTo(new SeenHeader(
                        "join-3",
                        1,
                        3,
                        List.of(7L),
                        List.of(new Arrivals(0, 1), new Idled(10, 20), began(OTHERS), new Arrivals(0, 1)),
                        List.of(OTHERS)));
    }

    @Test
    void shouldGiveTheTextOfItsSettingsToTheFirstRecordAlone() {
        Journal journal = new Journal(store, "join-3", SETTINGS);
        assertThat(read(journal.seen(0)).settings()).containsExactly(SETTINGS);
        assertThat(read(journal.seen(0)).settings()).isEmpty();
    }

    @Test
    void shouldNameTheSameSettingsInOneByteWhenItBeginsAgain() {
        new Journal(store, "join-3", SETTINGS).seen(0);
        Journal again = new Journal(store, "join-3", SETTINGS);
        again.arrived(new Seen(0, 5));
        byte[] restarted = again.seen(0);
        again.arrived(new Seen(0, 6));

        assertThat(read(restarted).since()).containsExactly(new BeganAgain(), new Arrivals(0, 1));
        assertThat(read(restarted).settings()).isEmpty();
        assertThat(restarted).hasSize(again.seen(0).length + 1);
    }

    @Test
    void shouldCarryEveryTextOfSettingsByWhichItBeganBeforeItsFirstRecord() {
        new Journal(store, "join-3", SETTINGS);
        SeenHeader seen = read(new Journal(store, "join-3", OTHERS).seen(0));
        assertThat(seen.since()).containsExactly(began(SETTINGS), began(OTHERS));
        assertThat(seen.settings()).containsExactly(SETTINGS, OTHERS);
    }

    @Test
    void shouldReadTheBeginningOfARunThatWasMadeBeforeThereWereForms() {
        byte[] header = new CompactBytes.Writer((byte) 1)
                .bytes("join-3".getBytes(StandardCharsets.UTF_8))
                .number(0)
                .number(77)
                .number(0)
                .bytes(HexFormat.of().parseHex("07" + "0123456789abcdef" + "08"))
                .toByteArray();
        assertThat(read(header).since()).containsExactly(new Began(Fingerprint.UNKNOWN), new Arrivals(0, 1));
    }

    @Test
    void shouldNotAddIdleTimeToThatAtWhoseEndSomethingChanged() {
        Journal journal = new Journal(store, "join-3", SETTINGS);
        journal.idled(10, 20);
        journal.changed();
        journal.idled(11, 31);
        assertThat(read(journal.seen(0)).since())
                .containsExactly(began(SETTINGS), new Idled(10, 20), new Idled(11, 31));
    }

    @Test
    void shouldTakeAboutAByteForEachChangeOfInputs() {
        Journal journal = new Journal(store, "join-3", SETTINGS);
        journal.seen(0);
        for (int i = 0; i < 20; i++) {
            journal.arrived(new Seen(0, 1_000_000 + i));
            journal.arrived(new Seen(1, 1_000_000 + i));
        }
        assertThat(journal.seen(600_000)).hasSizeLessThan(64);
    }

    @Test
    void shouldSayThatItHasLostWhatDoesNotFitIntoAHeader() {
        Journal journal = new Journal(store, "join-3", SETTINGS);
        for (int i = 0; i < 4000; i++) {
            journal.arrived(new Seen(i % 2, i));
        }
        assertThat(read(journal.seen(0)).since()).containsExactly(new Lost());
        journal.arrived(new Seen(0, 5000));
        assertThat(read(journal.seen(0)).since()).containsExactly(new Arrivals(0, 1));
    }

    @Test
    void shouldRefuseAHeaderThatEndsTooEarly() {
        byte[] cut = java.util.Arrays.copyOf(new Journal(store, "join-3", SETTINGS).seen(5), 12);
        assertThatThrownBy(() -> read(cut))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining(SeenHeader.HEADER);
    }
}
