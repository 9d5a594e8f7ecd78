package dev.millrace.cli.config;

import dev.millrace.api.catalogue.Catalogue;
import dev.millrace.api.catalogue.PluginException;
import dev.millrace.runtime.pipeline.Plugins;
import java.io.File;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import picocli.CommandLine;
import picocli.CommandLine.Option;
import picocli.CommandLine.ScopeType;

/** Option for further plug-in paths, of every command. */
public final class PluginPath {
    @Option(
            names = "--plugin-path",
            paramLabel = "PATH",
            scope = ScopeType.INHERIT,
            description = "Jar or folder of plug-ins, in addition to plugins/ of the installation; may be given often."
                    + " Plug-ins run with all rights of this process.")
    private List<String> paths = new ArrayList<>();

    /** Loads the plug-ins before anything is configured. */
    public void load(CommandLine command) {
        List<Path> all = new ArrayList<>(Catalogue.givenPaths());
        paths.stream()
                .flatMap(each -> Arrays.stream(each.split(File.pathSeparator)))
                .filter(each -> !each.isEmpty())
                .map(Path::of)
                .forEach(all::add);
        try {
            Plugins.install(all);
        } catch (PluginException e) {
            throw new CommandLine.ExecutionException(command, e.getMessage(), e);
        }
    }
}
