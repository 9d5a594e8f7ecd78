package dev.millrace.replay.retrain;

import dev.millrace.log.scan.RecordFetcher;
import dev.millrace.log.scan.TopicScan;
import dev.millrace.replay.archive.ArchiveException;
import dev.millrace.replay.archive.RecordedRun;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.serde.AvroRecordDeserializer;
import dev.millrace.schemas.serde.AvroSerde;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Consumer;
import java.util.function.Predicate;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;

public final class RecordedPrompts implements AutoCloseable {
    private final RecordedRun run;
    private final AvroRecordDeserializer<PromptRequest> deserializer;
    private final Map<String, Place> places = new HashMap<>();
    private final RecordFetcher fetcher;

    private record Place(TopicPartition partition, long offset) {}

    /**
     * Reads every prompt once.
     *
     * @param check sees each request
     * @throws ArchiveException if one is missing
     */
    RecordedPrompts(RecordedRun run, Set<String> groups, Consumer<PromptRequest> check) {
        this(run, groups::contains, check);
        groups.stream().filter(group -> !places.containsKey(group)).findFirst().ifPresent(lost -> {
            close();
            throw gone(lost);
        });
    }

    private RecordedPrompts(RecordedRun run, Predicate<String> wanted, Consumer<PromptRequest> check) {
        this.run = run;
        this.deserializer = AvroSerde.of(PromptRequest.class, run.registry()).deserializer();
        run.forEach(
                run.topics().prompts(),
                record -> ours(record)
                        .filter(request -> wanted.test(request.getGroupId()))
                        .ifPresent(request -> {
                            check.accept(request);
                            places.put(
                                    request.getGroupId(),
                                    new Place(new TopicPartition(record.topic(), record.partition()), record.offset()));
                        }));
        this.fetcher = run.fetcher();
    }

    private ArchiveException gone(String group) {
        return new ArchiveException(
                "the prompt of group " + group + " is not on " + run.topics().prompts()
                        + ", so it cannot be sampled again; choose a later --from-version, replay an archive that was exported in time, or leave out --live");
    }

    /** Every group whose prompt is kept. */
    public static RecordedPrompts all(RecordedRun run) {
        return new RecordedPrompts(run, any -> true, any -> {});
    }

    /** Empty if it is missing. Thread-safe. */
    public synchronized Optional<PromptRequest> find(String group) {
        return places.containsKey(group)
                ? Optional.of(Objects.requireNonNull(of(List.of(group)).get(group)))
                : Optional.empty();
    }

    private Optional<PromptRequest> ours(ConsumerRecord<byte[], byte[]> record) {
        return TopicScan.readable(deserializer, record)
                .filter(request -> run.run().owns(request.getRunId(), request.getEpoch()));
    }

    Map<String, PromptRequest> of(Collection<String> groups) {
        Map<TopicPartition, TreeSet<Long>> wanted = new HashMap<>();
        for (String group : groups) {
            Place place = Objects.requireNonNull(places.get(group), group);
            wanted.computeIfAbsent(place.partition(), partition -> new TreeSet<>())
                    .add(place.offset());
        }
        Map<String, PromptRequest> found = new HashMap<>();
        wanted.forEach((partition, offsets) -> fetcher.fetch(
                        partition, offsets.stream().mapToLong(Long::longValue).toArray())
                .forEach(record -> ours(record).ifPresent(request -> found.put(request.getGroupId(), request))));
        groups.stream().filter(group -> !found.containsKey(group)).findFirst().ifPresent(lost -> {
            throw gone(lost);
        });
        return found;
    }

    @Override
    public void close() {
        fetcher.close();
    }
}
