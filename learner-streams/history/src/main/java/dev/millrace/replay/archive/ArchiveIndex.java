package dev.millrace.replay.archive;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.core.StreamReadFeature;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.MapperFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.IntNode;
import com.fasterxml.jackson.databind.node.MissingNode;
import dev.millrace.schemas.run.EpochLineage;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import org.apache.avro.Schema;
import org.jspecify.annotations.Nullable;

/**
 * Contents of an archive. Its file {@code index.json} is written last, so a folder with one is complete.
 *
 * @param lineage origin of the epoch; null for a run's first
 * @param isWhole everything on the log was exported, not a range
 * @param held of an export of some batches; null otherwise
 * @param origin source of records that were never on our log, a sentence; null otherwise
 * @param configuration as YAML; empty if unknown
 */
record ArchiveIndex(
        int format,
        String runId,
        int epoch,
        String policyId,
        @Nullable EpochLineage lineage,
        String topicPrefix,
        boolean isWhole,
        @Nullable HeldRange held,
        @Nullable String origin,
        String configuration,
        Map<Integer, String> schemas,
        List<PartitionFile> files) {

    static final int FORMAT = 1;
    private static final String NAME = "index.json";
    private static final int MOST_BYTES = 1 << 28;
    private static final ObjectMapper JSON = JsonMapper.builder(JsonFactory.builder()
                    .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
                    .streamReadConstraints(StreamReadConstraints.builder()
                            .maxNestingDepth(16)
                            .maxNumberLength(32)
                            .build())
                    .build())
            .enable(SerializationFeature.INDENT_OUTPUT)
            .enable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES)
            .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
            .enable(DeserializationFeature.FAIL_ON_NULL_FOR_PRIMITIVES)
            .disable(DeserializationFeature.ACCEPT_FLOAT_AS_INT)
            .disable(MapperFeature.ALLOW_COERCION_OF_SCALARS)
            .build();

    /**
     * @param topic without prefix
     * @param from first exported offset, with or without a record
     * @param end behind the last
     * @param blocks file position by record offset, about one per MiB
     */
    record PartitionFile(
            String file,
            String topic,
            int partition,
            long from,
            long end,
            long records,
            String sha256,
            List<long[]> blocks) {

        static String name(String topic, int partition) {
            return topic + "-" + partition + ".avro";
        }
    }

    void write(Path folder) {
        Path whole = folder.resolve(NAME + ".new");
        try {
            Files.writeString(whole, JSON.writeValueAsString(this));
            Files.move(whole, folder.resolve(NAME), StandardCopyOption.ATOMIC_MOVE);
        } catch (IOException e) {
            throw new ArchiveException("cannot write " + folder.resolve(NAME) + ": " + e.getMessage(), e);
        }
    }

    /** @throws ArchiveException without an archive, or if its index is not as {@link #write} writes it */
    static ArchiveIndex read(Path folder) {
        Path file = in(folder);
        try {
            if (!Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS) && Files.exists(file)) {
                throw new ArchiveException(file + " is not a file; give a complete folder of 'millrace export'");
            }
            byte[] text;
            try (InputStream in = Files.newInputStream(file)) {
                text = in.readNBytes(MOST_BYTES + 1);
            }
            if (text.length > MOST_BYTES) {
                throw new ArchiveException(file + " has more than " + MOST_BYTES
                        + " bytes, too many for an index; give a complete folder of 'millrace export'");
            }
            ArchiveIndex index = parse(file, text);
            new IndexCheck(folder, index).require();
            return index;
        } catch (NoSuchFileException e) {
            throw new ArchiveException(
                    folder + " holds no archive (it has no " + NAME + "); give a complete folder of 'millrace export'",
                    e);
        } catch (IOException e) {
            throw new ArchiveException("cannot read " + file + ": " + e.getMessage(), e);
        }
    }

    private static ArchiveIndex parse(Path file, byte[] text) throws IOException {
        try {
            JsonNode tree = JSON.readTree(text);
            JsonNode format = tree == null ? MissingNode.getInstance() : tree.path("format");
            if (format.isIntegralNumber() && !format.equals(IntNode.valueOf(FORMAT))) {
                throw new ArchiveException(file + " is of format " + format + ", this version reads format " + FORMAT);
            }
            ArchiveIndex index = JSON.treeToValue(tree, ArchiveIndex.class);
            if (index == null) {
                throw new ArchiveException(file + " is not an archive index: it is empty");
            }
            return index;
        } catch (JsonProcessingException e) {
            throw new ArchiveException(file + " is not an archive index: " + e.getOriginalMessage(), e);
        }
    }

    static Path in(Path folder) {
        return folder.resolve(NAME);
    }

    static boolean isIn(Path folder) {
        return Files.exists(folder.resolve(NAME));
    }

    /** Validates a foreign index before opening its files: paths must stay in the folder, sizes must be bounded. */
    private static final class IndexCheck {
        private static final int MOST_FILES = 100_000;
        private static final int MOST_SCHEMAS = 10_000;
        private static final int MOST_PARTITIONS = 100_000;
        private static final long MOST_OFFSETS = 1L << 40;
        private static final Pattern SHA256 = Pattern.compile("[0-9a-f]{64}");

        private final Path folder;
        private final ArchiveIndex index;

        private IndexCheck(Path folder, ArchiveIndex index) {
            this.folder = folder;
            this.index = index;
        }

        void require() {
            RunTopics topics;
            try {
                new RunIdentity(index.runId(), index.epoch(), index.policyId());
                topics = new RunTopics(index.topicPrefix());
            } catch (IllegalArgumentException e) {
                throw refused(String.valueOf(e.getMessage()));
            }
            there("configuration", index.configuration());
            schemas(there("schemas", index.schemas()));
            if (index.held() != null) {
                held(index.held());
            }
            if (index.lineage() != null) {
                lineage(index.lineage());
            }
            files(there("files", index.files()), topics);
        }

        private <T> T there(String what, @Nullable T value) {
            if (value == null) {
                throw refused("it has no " + what);
            }
            return value;
        }

        private void schemas(Map<Integer, String> schemas) {
            if (schemas.size() > MOST_SCHEMAS) {
                throw refused("it has " + schemas.size() + " schemas, more than " + MOST_SCHEMAS);
            }
            schemas.forEach((id, text) -> {
                if (id < 0) {
                    throw refused("schema " + id + " has an id below 0");
                }
                String schema = there("schema under the id " + id, text);
                try {
                    new Schema.Parser().parse(schema);
                } catch (RuntimeException e) { // Avro's parser throws no common exception type
                    throw refused("schema " + id + " is invalid: " + e.getMessage());
                }
            });
        }

        private void held(HeldRange held) {
            there("held.store", held.store());
            if (held.firstBatch() < 0
                    || held.lastBatch() < held.firstBatch()
                    || held.fromVersion() < 0
                    || held.toVersion() < held.fromVersion()
                    || held.startVersion() < -1
                    || held.oldestWeights() < -1
                    || held.newestWeights() < held.oldestWeights()
                    || held.optimizerVersion() < -1) {
                throw refused("its contents are not a range of batches and versions: " + held);
            }
        }

        private void lineage(EpochLineage lineage) {
            lineage.beganAt().forEach((partition, offset) -> {
                if (offset < 0 || offset > MOST_OFFSETS) {
                    throw refused("its epoch began at offset " + offset + " of " + shown(partition));
                }
            });
            int younger = index.epoch();
            for (EpochLineage.Ancestor ancestor : lineage.ancestors()) {
                if (ancestor.epoch() < 0 || ancestor.epoch() >= younger || ancestor.version() < 0) {
                    throw refused("epoch " + younger + " continued from version " + ancestor.version() + " of epoch "
                            + ancestor.epoch()
                            + "; versions and epochs are at least 0, and each epoch's parent is older");
                }
                sha256("version " + ancestor.version() + " of epoch " + ancestor.epoch(), ancestor.weightsSha256());
                younger = ancestor.epoch();
            }
        }

        private void sha256(String of, @Nullable String text) {
            if (!SHA256.matcher(there("sha256 of " + of, text)).matches()) {
                throw refused(of + " has the SHA-256 " + shown(String.valueOf(text))
                        + ", expected 64 lower-case hexadecimal digits");
            }
        }

        private void files(List<PartitionFile> files, RunTopics topics) {
            if (files.size() > MOST_FILES) {
                throw refused("it names " + files.size() + " files, more than " + MOST_FILES);
            }
            Set<String> allowed = new HashSet<>(topics.all());
            allowed.remove(topics.run());
            Map<String, Integer> highest = new HashMap<>();
            Map<String, Integer> count = new HashMap<>();
            Set<String> names = new HashSet<>();
            for (PartitionFile file : files) {
                require(there("files, null is among them", file), topics, allowed);
                if (!names.add(file.file())) {
                    throw refused("it names " + file.file() + " twice");
                }
                highest.merge(file.topic(), file.partition(), Math::max);
                count.merge(file.topic(), 1, Integer::sum);
            }
            highest.forEach((topic, most) -> {
                int of = count.getOrDefault(topic, 0);
                if (most != of - 1) {
                    throw refused("topic " + topic + " has " + of + " files and a partition " + most
                            + "; partitions are counted from 0");
                }
            });
        }

        private void require(PartitionFile file, RunTopics topics, Set<String> allowed) {
            there("name of a file", file.file());
            String topic = there("topic of file " + file.file(), file.topic());
            if (!allowed.contains(topics.prefix() + topic)) {
                throw refused("file " + shown(file.file()) + " is of topic " + shown(topic)
                        + ", and no run has a topic of that name");
            }
            if (file.partition() < 0 || file.partition() >= MOST_PARTITIONS) {
                throw refused("file " + shown(file.file()) + " is of partition " + file.partition()
                        + "; partitions are from 0 to " + (MOST_PARTITIONS - 1));
            }
            String name = PartitionFile.name(topic, file.partition());
            if (!file.file().equals(name)) {
                throw refused("the file of " + topic + "-" + file.partition() + " must be called " + name
                        + ", in its folder: " + shown(file.file()));
            }
            if (file.from() < 0 || file.end() < file.from() || file.end() > MOST_OFFSETS) {
                throw refused("file " + name + " has the offsets from " + file.from() + " up to " + file.end()
                        + "; they are at least 0, at most " + MOST_OFFSETS + ", and ascend");
            }
            if (file.records() < 0 || file.records() > file.end() - file.from()) {
                throw refused("file " + name + " has " + file.records() + " records at " + (file.end() - file.from())
                        + " offsets; there is at most one at each");
            }
            sha256("file " + name, file.sha256());
            blocks(file, size(folder.resolve(name)));
        }

        private long size(Path path) {
            try {
                BasicFileAttributes attributes =
                        Files.readAttributes(path, BasicFileAttributes.class, LinkOption.NOFOLLOW_LINKS);
                if (!attributes.isRegularFile()) {
                    throw new ArchiveException(path + ", which the archive's index names, is a "
                            + (attributes.isSymbolicLink()
                                    ? "link"
                                    : attributes.isDirectory() ? "folder" : "device or pipe")
                            + ", and an archive has only files; copy the archive again");
                }
                return attributes.size();
            } catch (IOException e) {
                throw new ArchiveException(
                        "cannot read " + path + ", which the archive's index names: " + e.getMessage(), e);
            }
        }

        private void blocks(PartitionFile file, long size) {
            List<long[]> blocks = there("blocks of file " + file.file(), file.blocks());
            if (blocks.size() > file.records() || blocks.isEmpty() && file.records() > 0) {
                throw refused("file " + file.file() + " has " + blocks.size() + " blocks and " + file.records()
                        + " records; each block has one at least, and each record is in one");
            }
            long offset = file.from();
            long position = 0;
            for (long[] block : blocks) {
                if (block == null || block.length != 2) {
                    throw refused("a block of file " + file.file() + " must be an offset and a position");
                }
                if (block[0] < offset || block[0] >= file.end() || block[1] <= position || block[1] >= size) {
                    throw refused("file " + file.file() + " has a block of offset " + block[0] + " at byte " + block[1]
                            + "; offsets and bytes ascend, below " + file.end() + " and " + size);
                }
                offset = block[0] + 1;
                position = block[1];
            }
        }

        private ArchiveException refused(String why) {
            return new ArchiveException(ArchiveIndex.in(folder) + " is not a valid archive file: " + why
                    + "; export the run again, or copy the archive again");
        }

        private static String shown(String text) {
            return "'" + (text.length() <= 80 ? text : text.substring(0, 80) + "...") + "'";
        }
    }
}
