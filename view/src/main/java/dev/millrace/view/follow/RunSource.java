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

/** Where a run is. */
public sealed interface RunSource {
    /** The file in which a process that trains says where its broker is. */
    String ADDRESS = "broker.address";

    /** Its name in addresses of the page. */
    String name();

    /** What opens it; each call opens it anew, and none keeps it from going on. */
    OpenRun open();

    /** The folder in which it is or was trained; empty where it is not known here. */
    Optional<Path> folder();

    /** Whether somebody may be adding to it. */
    boolean mayGrow();

    /** The command line options that name the run in other commands. */
    String options();

    /** In the folder of a run that had, or has, its own broker. */
    record Folder(String name, Path path) implements RunSource {
        /** By the name of its folder. */
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

    /** In this process, in its folder; the broker is the run's own. */
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

    /** On a cluster. */
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

    /** In an archive. */
    record Archive(String name, Path path) implements RunSource {
        /** By the name of its folder. */
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

    /** The alarms that last, or lasted when the run's last process ended, as far as its folder says. */
    default List<Alarm> alarms() {
        return folder().map(AlarmFile::read).orElse(List.of());
    }

    /** Whether a process has trained it in its folder, and not only put records there. */
    default boolean wasTrained() {
        return folder().filter(path -> Files.exists(path.resolve(ADDRESS))).isPresent();
    }

    /** The summary that the run's last end wrote, as JSON text; empty where there is none, or the run has gone on since. */
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
