package dev.millrace.docs.site;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class RenderSiteTest {
    private static final Path REPOSITORY = Path.of("..").toAbsolutePath().normalize();

    @TempDir
    private Path folder;

    @Test
    void shouldRenderEveryPageOfTheRepositoryWithoutADeadLink() throws IOException {
        int pages = RenderSite.render(REPOSITORY, folder);

        assertThat(pages).isGreaterThan(30);
        assertThat(folder.resolve("index.html"))
                .content()
                .contains("<h1 id=\"what-millrace-is\">", "viewport", "href=\"start.html\"");
        assertThat(folder.resolve("concepts/ledger.html")).content().contains("href=\"../site.css\"");
        assertThat(folder.resolve("files/docs/img/collapse.svg")).isRegularFile();
        assertThat(folder.resolve("site.css")).content().contains("prefers-color-scheme: dark");
    }

    @Test
    void shouldNameTheLinkThatLeadsNowhere() throws IOException {
        pages("# One\n\n[two](two.md) [gone](gone.md)\n", "# Two\n");

        assertThatThrownBy(() -> RenderSite.render(folder, folder.resolve("site")))
                .isInstanceOf(SiteException.class)
                .hasMessageContaining("gone.md leads to nothing")
                .hasMessageNotContaining("two.md leads");
        assertThat(folder.resolve("site")).doesNotExist();
    }

    @Test
    void shouldNameTheHeadingThatIsNotThere() throws IOException {
        pages("# One\n\n[there](two.md#two-words) [not there](two.md#three-words)\n", "# Two\n\n## Two words\n");

        assertThatThrownBy(() -> RenderSite.render(folder, folder.resolve("site")))
                .hasMessageContaining("two.md#three-words leads to a heading that is not there")
                .hasMessageNotContaining("two.md#two-words leads");
    }

    @Test
    void shouldRefuseAPageThatTheContentsForget() throws IOException {
        pages("# One\n", "# Two\n");
        Files.writeString(folder.resolve("docs/three.md"), "# Three\n");

        assertThatThrownBy(() -> RenderSite.render(folder, folder.resolve("site")))
                .hasMessageContaining("contents.md does not name")
                .hasMessageContaining("three.md");
    }

    @Test
    void shouldTakeAFolderForThePagesInIt() throws IOException {
        pages("# One\n", "# Two\n");
        Files.writeString(Files.createDirectories(folder.resolve("docs/more")).resolve("a.md"), "# A third\n");
        Path contents = folder.resolve("docs/contents.md");
        Files.writeString(contents, Files.readString(contents) + "- [More](more/)\n");

        assertThat(RenderSite.render(folder, folder.resolve("site"))).isEqualTo(3);
        assertThat(folder.resolve("site/one.html")).content().contains("<a href=\"more/a.html\">A third</a>");
    }

    @Test
    void shouldRefuseAPictureThatNobodyCanHear() throws IOException {
        pages("# One\n\n![](two.md)\n", "# Two\n");

        assertThatThrownBy(() -> RenderSite.render(folder, folder.resolve("site")))
                .hasMessageContaining("a picture without a description");
    }

    @Test
    void shouldCopyTheFilesThatPagesLinkTo() throws IOException {
        pages("# One\n\n[a file](../data.csv), [a heading](#one)\n", "# Two\n");
        Files.writeString(folder.resolve("data.csv"), "1,2\n");

        RenderSite.render(folder, folder.resolve("site"));

        assertThat(folder.resolve("site/files/data.csv")).content().isEqualTo("1,2\n");
        assertThat(folder.resolve("site/one.html"))
                .content()
                .contains("href=\"files/data.csv\"", "href=\"#one\"", "<a href=\"two.html\">Two →</a>");
    }

    private void pages(String one, String two) throws IOException {
        Path docs = Files.createDirectories(folder.resolve("docs"));
        Files.writeString(docs.resolve("contents.md"), "# Contents\n\n## All\n\n- [One](one.md)\n- [Two](two.md)\n");
        Files.writeString(docs.resolve("one.md"), one);
        Files.writeString(docs.resolve("two.md"), two);
    }
}
