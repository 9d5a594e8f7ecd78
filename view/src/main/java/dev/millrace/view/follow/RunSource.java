package dev.millrace.view.follow;

import dev.millrace.log.Alarm;
import dev.millrace.runtime.report.AuditedRun;
import dev.millrace.runtime.train.AlarmFile;
import dev.millrace.runtime.train.RunDirectory;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;

/** Location of a run. */
public sealed interface RunSource {
    /** File with the broker's address of a training process. */
    String ADDRESS = "broker.address";

    String name();

    OpenRun open();

    /** The training folder; empty if unknown. */
    Optional<Path> folder();

    /** Returns whether records may still be added. */
    boolean mayGrow();

    /** Options that name the run in other commands. */
    String options();

    record Folder(String name, Path path) implements RunSource {
        public Folder(Path path) {
            this(nameOf(path), path);
        }

        @Override
        public OpenRun open() {
            return OpenRun.on(AuditedRun.inFolder(path));
        }

        @Override
        public Optional<Path> folder() {
            return Optional.of(path);
        }

        @Override
        public boolean mayGrow() {
            return RunDirectory.isRunning(path);
        }

        @Override
        public String options() {
            return "--run-dir " + path;
        }
    }

    record Here(Path path) implements RunSource {
        @Override
        public String name() {
            return nameOf(path);
        }

        @Override
        public OpenRun open() {
            return OpenRun.on(AuditedRun.at(RunDirectory.brokerAddress(path), path));
        }

        @Override
        public Optional<Path> folder() {
            return Optional.of(path);
        }

        @Override
        public boolean mayGrow() {
            return true;
        }

        @Override
        public String options() {
            return "--run-dir " + path;
        }
    }

    record Cluster(String name, Supplier<AuditedRun> opening, String options) implements RunSource {
        @Override
        public OpenRun open() {
            return OpenRun.on(opening.get());
        }

        @Override
        public Optional<Path> folder() {
            return Optional.empty();
        }

        @Override
        public boolean mayGrow() {
            return true;
        }
    }

    record Archive(String name, Path path) implements RunSource {
        public Archive(Path path) {
            this(nameOf(path), path);
        }

        @Override
        public OpenRun open() {
            return OpenRun.in(path);
        }

        @Override
        public Optional<Path> folder() {
            return Optional.empty();
        }

        @Override
        public boolean mayGrow() {
            return false;
        }

        @Override
        public String options() {
            return "--archive " + path;
        }
    }

    private static String nameOf(Path path) {
        return path.toAbsolutePath().normalize().getFileName().toString();
    }

    /** Alarms at the end of the last process, from its folder. */
    default List<Alarm> alarms() {
        return folder().map(AlarmFile::read).orElse(List.of());
    }

    /** False for a folder that only received records. */
    default boolean wasTrained() {
        return folder().filter(path -> Files.exists(path.resolve(ADDRESS))).isPresent();
    }

    /** Summary JSON of the last end; empty if there is none or the run continued. */
    default Optional<String> summary() {
        return folder().flatMap(path -> {
            Path summary = path.resolve("summary.json");
            Path began = path.resolve(ADDRESS);
            try {
                boolean isThere = Files.isRegularFile(summary)
                        && (!Files.exists(began)
                                || Files.getLastModifiedTime(summary).compareTo(Files.getLastModifiedTime(began)) >= 0);
                return isThere ? Optional.of(Files.readString(summary)) : Optional.empty();
            } catch (IOException e) {
                return Optional.empty();
            }
        });
    }
}
