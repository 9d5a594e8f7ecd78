package dev.millrace.runtime.pipeline;

import dev.millrace.log.LogConnection;
import dev.millrace.report.WholeFile;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.runtime.config.MillraceConfig;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import java.util.OptionalLong;

/**
 * Writes the models of a finished run, replacing earlier ones. Each is written to a temporary folder and renamed, so a
 * model is whole or absent.
 */
public final class EndModels {
    private final LogConnection connection;
    private final MillraceConfig config;
    private final Path folder;

    /** @param folder of the models; it need not be there */
    public EndModels(LogConnection connection, MillraceConfig config, Path folder) {
        this.connection = connection;
        this.config = config;
        this.folder = folder;
    }

    /**
     * Writes one of them.
     *
     * @return what was written, as a sentence
     * @throws RefusedRequestException if it could not be written; what was there before is still there
     */
    public String write(String name, long version) {
        String said = write(name, version, (export, to) -> export.to(to, OptionalLong.of(version), Optional.empty()));
        boolean isAdapter = config.learner().lora().rank() > 0 && version > 0;
        return isAdapter
                ? said + "; "
                        + write(
                                name + "-adapter",
                                version,
                                (export, to) -> export.adapterTo(to, OptionalLong.of(version)))
                : said;
    }

    @FunctionalInterface
    private interface Export {
        ModelExport.Done by(ModelExport export, Path to);
    }

    private String write(String name, long version, Export way) {
        Path place = folder.resolve(name);
        Path made = folder.resolve("." + name + ".new");
        Path before = folder.resolve("." + name + ".old");
        try {
            WholeFile.delete(made);
            WholeFile.delete(before);
            ModelExport.Done done = way.by(new ModelExport(connection, config), made);
            if (Files.exists(place)) {
                Files.move(place, before);
            }
            Files.move(made, place);
            WholeFile.delete(before);
            return place + " is " + (done.adapter() ? "the adapter of version " : "version ") + version
                    + (done.isExact() ? ", bit for bit" : ", rounded to " + String.join(", ", done.types()));
        } catch (IOException e) {
            throw new RefusedRequestException("cannot write " + place + ": " + e.getMessage(), e);
        }
    }
}
