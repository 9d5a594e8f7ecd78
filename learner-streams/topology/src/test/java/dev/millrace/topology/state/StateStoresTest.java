package dev.millrace.topology.state;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.TestOutputTopic;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** A record of the test is a commit: a list of keys to put, and of keys with a minus to delete. */
@ParameterizedClass
@EnumSource(StateStores.Kind.class)
class StateStoresTest {
    private static final String STORE = "entries";

    @TempDir
    Path directory;

    private final StateStores.Kind kind;
    private TopologyTestDriver driver;
    private TestInputTopic<String, String> commits;
    private TestOutputTopic<String, String> changelog;

    StateStoresTest(StateStores.Kind kind) {
        this.kind = kind;
    }

    private static final class Entries extends ContextualProcessor<String, String, Void, Void> {
        private KeyValueStore<Bytes, byte[]> store;

        @Override
        public void init(ProcessorContext<Void, Void> context) {
            super.init(context);
            store = context.getStateStore(STORE);
            StateStores.dropShortLived(store);
        }

        @Override
        public void process(Record<String, String> commit) {
            for (String change : commit.value().split(" ")) {
                boolean isDeletion = change.startsWith("-");
                Bytes key = Bytes.wrap(change.substring(isDeletion ? 1 : 0).getBytes(UTF_8));
                store.put(key, isDeletion ? null : "here".getBytes(UTF_8));
                assertThat(store.get(key) == null).isEqualTo(isDeletion);
            }
        }
    }

    @BeforeEach
    void open() {
        Properties properties = new Properties();
        properties.put(StreamsConfig.APPLICATION_ID_CONFIG, "test");
        properties.put(StreamsConfig.STATE_DIR_CONFIG, directory.toString());
        Topology topology = new Topology()
                .addSource("commits", new StringDeserializer(), new StringDeserializer(), "commits")
                .addProcessor("process", Entries::new, "commits")
                .addStateStore(StateStores.store(STORE, kind), "process");
        driver = new TopologyTestDriver(topology, properties);
        commits = driver.createInputTopic("commits", new StringSerializer(), new StringSerializer());
        changelog = driver.createOutputTopic(
                "test-" + STORE + "-changelog", new StringDeserializer(), new StringDeserializer());
    }

    @AfterEach
    void close() {
        driver.close();
    }

    private List<KeyValue<String, String>> written(String changes) {
        commits.pipeInput(changes);
        return changelog.readKeyValuesToList();
    }

    @Test
    void shouldWriteNothingOfAnEntryThatIsPutAndDeletedWithinACommit() {
        assertThat(written("a b -a")).containsExactly(KeyValue.pair("b", "here"));
    }

    @Test
    void shouldWriteATombstoneOfAnEntryOfAnEarlierCommit() {
        assertThat(written("a")).containsExactly(KeyValue.pair("a", "here"));
        assertThat(written("-a")).containsExactly(KeyValue.pair("a", null));
        assertThat(written("a -a")).isEmpty();
    }

    @Test
    void shouldWriteAnEntryThatIsDeletedAndPutAgain() {
        written("a");

        assertThat(written("-a a")).containsExactly(KeyValue.pair("a", "here"));
        assertThat(written("-a a -a")).containsExactly(KeyValue.pair("a", null));
    }
}
