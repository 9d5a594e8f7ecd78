package dev.millrace.view.follow;

import dev.millrace.replay.archive.ArchiveException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;
import org.apache.kafka.common.TopicPartition;

/** The folder in which a broker of Kafka keeps everything: a folder for each partition, and where each one's log begins. Thread-safe. */
final class BrokerFiles {
    private static final String BEGINNINGS = "log-start-offset-checkpoint";

    private final Path folder;
    private final Map<TopicPartition, Path> partitions;
    private final Map<TopicPartition, Long> beginnings;
    private final Map<TopicPartition, PartitionFiles> read = new ConcurrentHashMap<>();

    private BrokerFiles(Path folder, Map<TopicPartition, Path> partitions, Map<TopicPartition, Long> beginnings) {
        this.folder = folder;
        this.partitions = partitions;
        this.beginnings = beginnings;
    }

    /** @throws ArchiveException if there is no such folder */
    static BrokerFiles in(Path folder) {
        Map<TopicPartition, Path> partitions = new HashMap<>();
        try (Stream<Path> entries = Files.list(folder)) {
            entries.filter(Files::isDirectory).forEach(entry -> {
                String name = entry.getFileName().toString();
                int at = name.lastIndexOf('-');
                // one that is being deleted has a suffix of letters
                if (at > 0 && name.substring(at + 1).matches("\\d{1,9}")) {
                    partitions.put(
                            new TopicPartition(name.substring(0, at), Integer.parseInt(name.substring(at + 1))), entry);
                }
            });
            return new BrokerFiles(folder, partitions, beginnings(folder.resolve(BEGINNINGS)));
        } catch (IOException e) {
            throw new ArchiveException("there are no files of a broker in " + folder + " (" + e.getMessage() + ")", e);
        }
    }

    /** Lines of topic, partition and offset, behind one with the form and one with their number. */
    private static Map<TopicPartition, Long> beginnings(Path file) throws IOException {
        Map<TopicPartition, Long> beginnings = new HashMap<>();
        if (Files.exists(file)) {
            Files.readAllLines(file).stream()
                    .map(line -> line.split(" ", -1))
                    .filter(fields -> fields.length == 3)
                    .forEach(fields -> beginnings.put(
                            new TopicPartition(fields[0], Integer.parseInt(fields[1])), Long.valueOf(fields[2])));
        }
        return beginnings;
    }

    /** The partitions of a topic, in order; none where there is no such topic. */
    List<TopicPartition> partitions(String topic) {
        return partitions.keySet().stream()
                .filter(partition -> partition.topic().equals(topic))
                .sorted(Comparator.comparingInt(TopicPartition::partition))
                .toList();
    }

    /** Of a partition, whose batches' heads are read when it is first asked for. */
    PartitionFiles of(TopicPartition partition) {
        return read.computeIfAbsent(partition, unread -> {
            Path path = partitions.get(unread);
            if (path == null) {
                throw new ArchiveException("the broker's files in " + folder + " have no " + unread);
            }
            return new PartitionFiles(path, beginnings.getOrDefault(unread, 0L));
        });
    }

    /** As much of the partitions as was looked at so far. */
    int partitionsRead() {
        return read.size();
    }
}
