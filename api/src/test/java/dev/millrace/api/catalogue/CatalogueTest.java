package dev.millrace.api.catalogue;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.millrace.api.catalogue.LoadedPlugin.Origin;
import dev.millrace.api.catalogue.TestPoint.Bell;
import dev.millrace.api.plugin.Kind;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class CatalogueTest {
    @TempDir
    private Path folder;

    private Path bell(String file, String plugin, String kind) throws IOException {
        return PluginJar.bell(folder, plugin, kind).write(file);
    }

    @Test
    void shouldHaveWhatIsBuiltInWithoutAnyPath() {
        Catalogue catalogue = Catalogue.of(List.of());
        assertThat(catalogue.extensionPoint(Bell.class))
                .map(ExtensionPoint::name)
                .hasValue("bell");
        assertThat(catalogue.kinds(Bell.class)).singleElement().matches(kind -> kind.isCalled("ding"));
        assertThat(catalogue.nameOf(TestPoint.Chime.class)).hasValue("chime");
        assertThat(catalogue.nameOf(String.class)).isEmpty();
        assertThat(catalogue.plugins())
                .singleElement()
                .satisfies(plugin -> assertThat(plugin.origin()).isEqualTo(Origin.BUILT_IN));
    }

    @Test
    void shouldTakeAJarWithItsVersionAndItsKinds() throws IOException {
        Path jar = bell("lab.jar", "our-lab", "gong");
        Catalogue catalogue = Catalogue.of(List.of(jar));
        assertThat(catalogue.kinds(Bell.class)).extracting(Kind::name).containsExactly("chime", "gong");
        LoadedPlugin plugin = catalogue.plugins().get(1);
        assertThat(plugin.name()).isEqualTo("our-lab");
        assertThat(plugin.origin()).isEqualTo(Origin.JAR);
        assertThat(plugin.version()).isEqualTo("1.2");
        assertThat(plugin.place()).isEqualTo(jar.toRealPath().toString());
        assertThat(catalogue.path()).isEqualTo(plugin.place());
        Kind gong = catalogue.kinds(Bell.class).get(1);
        assertThat(gong.defaults()).hasToString("Gong[size=9]");
        assertThat(catalogue.nameOf(gong.type())).hasValue("gong");
    }

    @Test
    void shouldTakeEveryJarOfAFolderAndAFolderOfJarsAsOnePlugin() throws IOException {
        bell("plugins/a.jar", "a", "gong");
        new PluginJar(folder)
                .source(
                        "need.Tuned",
                        "package need; public record Tuned(double hertz) implements dev.millrace.api.catalogue.TestPoint.Bell {}")
                .write("plugins/b/needed.jar");
        new PluginJar(folder)
                .source(
                        "need.Tuned",
                        "package need; public record Tuned(double hertz) implements dev.millrace.api.catalogue.TestPoint.Bell {}")
                .plugin("lab.Other", "b", "Kind.of(TestPoint.Bell.class, \"tuned\", new need.Tuned(440), \"Pure.\")")
                .write("plugins/b/plugin.jar", "need/");
        Files.writeString(folder.resolve("plugins/README.md"), "not a jar, and nobody minds");

        Catalogue catalogue = Catalogue.of(List.of(folder.resolve("plugins"), folder.resolve("plugins/a.jar")));
        assertThat(catalogue.kinds(Bell.class)).extracting(Kind::name).containsExactly("chime", "gong", "tuned");
        assertThat(catalogue.plugins()).extracting(LoadedPlugin::name).containsExactly("bells", "a", "b");
    }

    @Test
    void shouldRefuseWhatWasBuiltAgainstAnotherVersion() throws IOException {
        Path jar = PluginJar.bell(folder, "our-lab", "gong")
                .source(
                        "dev.millrace.api.plugin.PluginApi",
                        "package dev.millrace.api.plugin; public final class PluginApi { public static final int VERSION = 7; }")
                .write("old.jar", "dev/");
        assertThatThrownBy(() -> Catalogue.of(List.of(jar)))
                .isInstanceOf(PluginException.class)
                .hasMessage("the plug-in " + jar.toRealPath()
                        + " was built against version 7 of the plug-in interface, and this is version 1;"
                        + " build it against the millrace-api of this release, or take the jar away");
    }

    @Test
    void shouldRefuseTwoPluginsOfOneName() throws IOException {
        Path one = bell("one.jar", "our-lab", "gong");
        Path two = bell("two.jar", "our-lab", "bong");
        assertThatThrownBy(() -> Catalogue.of(List.of(one, two)))
                .hasMessage("two plug-ins are called our-lab: " + one.toRealPath() + " and " + two.toRealPath()
                        + "; take one of them away");
    }

    @Test
    void shouldRefuseTwoKindsOfOneName() throws IOException {
        Path jar = bell("lab.jar", "our-lab", "ding");
        assertThatThrownBy(() -> Catalogue.of(List.of(jar)))
                .hasMessage("two kinds of Bell are called ding: of bells (built in) and of our-lab (" + jar.toRealPath()
                        + "); give one another name");
    }

    @Test
    void shouldRefuseWhatIsNoJar() throws IOException {
        Path file = Files.writeString(folder.resolve("text.jar"), "no jar at all");
        assertThatThrownBy(() -> Catalogue.of(List.of(file)))
                .hasMessageContaining("the plug-in " + file.toRealPath() + " cannot be read: text.jar is no jar (");
        assertThatThrownBy(() -> Catalogue.of(List.of(folder.resolve("absent.jar"))))
                .hasMessage(
                        "there is no plug-in at " + folder.resolve("absent.jar") + "; name a jar, or a folder of jars");
        Files.createDirectories(folder.resolve("plugins/empty"));
        assertThatThrownBy(() -> Catalogue.of(List.of(folder.resolve("plugins"))))
                .hasMessageContaining("holds no jar");
    }

    @Test
    void shouldOpenNoDeviceAndNoPipeAsAJar() throws Exception {
        assertThatThrownBy(() -> Catalogue.of(List.of(Path.of("/dev/zero"))))
                .hasMessage("/dev/zero is not a regular file, so it is no plug-in; name a jar, or a folder of jars");
        Path pipe = folder.resolve("pipe.jar");
        assumeTrue(new ProcessBuilder("mkfifo", pipe.toString()).start().waitFor() == 0);
        assertThatThrownBy(() -> Catalogue.of(List.of(folder)))
                .hasMessageContaining("pipe.jar is not a regular file, so it is no plug-in");
    }

    @Test
    void shouldRefuseAJarThatOffersNothing() throws IOException {
        Path jar = new PluginJar(folder)
                .source("lab.Nothing", "package lab; class Nothing {}")
                .write("nothing.jar");
        assertThatThrownBy(() -> Catalogue.of(List.of(jar)))
                .hasMessageContaining(
                        "nothing.jar offers nothing: it has no file META-INF/services/dev.millrace.api.plugin.Plugin");
    }

    @Test
    void shouldRefuseWhatCannotBeLoadedOrLacksAClass() throws IOException {
        Path absent = new PluginJar(folder)
                .source("lab.Nothing", "package lab; class Nothing {}")
                .services("lab.Absent\n")
                .write("absent-class.jar");
        assertThatThrownBy(() -> Catalogue.of(List.of(absent)))
                .hasMessageContaining("absent-class.jar cannot be loaded: ")
                .hasMessageContaining("lab.Absent");
        Path incomplete = PluginJar.bell(folder, "our-lab", "gong").write("incomplete.jar", "lab/Gong");
        assertThatThrownBy(() -> Catalogue.of(List.of(incomplete)))
                .hasMessageContaining(
                        "incomplete.jar was built against another release of Millrace, or lacks classes it needs")
                .hasMessageContaining("lab/Gong");
    }

    @Test
    void shouldRefuseKindsThatFitNoExtensionPoint() throws IOException {
        Path noPoint = new PluginJar(folder)
                .source("lab.Run", "package lab; public record Run() implements Runnable { public void run() {} }")
                .plugin("lab.Lab", "our-lab", "Kind.of(Runnable.class, \"run\", new Run(), \"Runs.\")")
                .write("no-point.jar");
        assertThatThrownBy(() -> Catalogue.of(List.of(noPoint)))
                .hasMessageContaining(
                        "offers run through java.lang.Runnable, which is no extension point; the extension points are "
                                + Bell.class.getName());
        Path hidden = new PluginJar(folder)
                .source(
                        "lab.Mute",
                        "package lab; record Mute() implements dev.millrace.api.catalogue.TestPoint.Bell {}")
                .plugin("lab.Lab", "our-lab", "Kind.of(TestPoint.Bell.class, \"mute\", new Mute(), \"Silent.\")")
                .write("hidden.jar");
        assertThatThrownBy(() -> Catalogue.of(List.of(hidden))).hasMessageContaining("lab.Mute is not public");
        Path badName = bell("bad-name.jar", "our-lab", "Gong");
        assertThatThrownBy(() -> Catalogue.of(List.of(badName)))
                .hasMessageContaining(
                        "failed when it was asked what it offers: a kind's name begins with a lower-case letter");
    }

    @Test
    void shouldKeepTheCatalogueWhereTheSamePlacesAreInstalledAgain() throws IOException {
        Path jar = bell("lab.jar", "our-lab", "gong");
        Catalogue first = Catalogue.install(List.of(jar));
        try {
            assertThat(Catalogue.install(List.of(jar))).isSameAs(first);
            assertThat(Catalogue.current()).isSameAs(first);
            Path file = Files.writeString(folder.resolve("text.jar"), "no jar at all");
            assertThatThrownBy(() -> Catalogue.install(List.of(file))).isInstanceOf(PluginException.class);
            assertThat(Catalogue.current()).isSameAs(first);
        } finally {
            Catalogue.install(List.of());
        }
        assertThat(Catalogue.current().kinds(Bell.class)).hasSize(1);
    }
}
