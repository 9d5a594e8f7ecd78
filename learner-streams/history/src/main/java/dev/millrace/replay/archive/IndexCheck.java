package dev.millrace.replay.archive;

import dev.millrace.replay.archive.ArchiveIndex.PartitionFile;
import dev.millrace.schemas.run.EpochLineage;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
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
 * Whether an index can be that of an archive, decided before a file that it names is opened: an archive comes from somebody else, and
 * what it says must neither lead out of its folder nor keep a reader busy for ever.
 */
final class IndexCheck {
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

    /** @throws ArchiveException naming what is wrong */
    static void require(Path folder, ArchiveIndex index) {
        new IndexCheck(folder, index).require();
    }

    private void require() {
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
            } catch (RuntimeException e) { // Avro's parser has no common type for what it stumbles over
                throw refused("schema " + id + " is none: " + e.getMessage());
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
            throw refused("what it says it holds is no range of batches and versions: " + held);
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
                throw refused("epoch " + younger + " went on from version " + ancestor.version() + " of epoch "
                        + ancestor.epoch() + "; versions and epochs are at least 0, and each epoch's parent is older");
            }
            sha256("version " + ancestor.version() + " of epoch " + ancestor.epoch(), ancestor.weightsSha256());
            younger = ancestor.epoch();
        }
    }

    private void sha256(String of, @Nullable String text) {
        if (!SHA256.matcher(there("sha256 of " + of, text)).matches()) {
            throw refused(of + " has the SHA-256 " + shown(String.valueOf(text))
                    + ", which is none: it has 64 hexadecimal digits in lower case");
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
                        + ", and an archive consists of files; copy the archive again");
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
        return new ArchiveException(ArchiveIndex.in(folder) + " is not as 'millrace export' writes it: " + why
                + "; export the run again, or copy the archive again");
    }

    private static String shown(String text) {
        return "'" + (text.length() <= 80 ? text : text.substring(0, 80) + "...") + "'";
    }
}
