/*
 * draw.c - pictures and lines on a terminal: as images where the terminal takes them, else as
 * characters.
 *
 * What the terminal takes is known from the environment alone. A question to the terminal would
 * have its answer on standard input, among what the user types.
 */
#include "draw.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli.h"

/* ==== what the screen can show =========================== */

enum { USUAL_COLUMNS = 80, USUAL_ROWS = 24, MOST_COLUMNS = 1000, CELL_WIDTH = 10, CELL_HEIGHT = 20,
       SMALL_SIDE = 24, LEAST_SIDE = 8 };

static int env_is(const char *name, const char *value)
{
    const char *text = getenv(name);

    return text && strcmp(text, value) == 0;
}

static int env_begins(const char *name, const char *prefix)
{
    const char *text = getenv(name);

    return text && strncmp(text, prefix, strlen(prefix)) == 0;
}

static int env_has(const char *name, const char *part)
{
    const char *text = getenv(name);

    return text && strstr(text, part) != NULL;
}

/* tmux and screen do not pass images on, and leave the variables of the terminal around them. */
static int is_multiplexed(void)
{
    return env_begins("TERM", "screen") || env_begins("TERM", "tmux");
}

static int takes_kitty(void)
{
    return !is_multiplexed() &&
           (env_is("TERM", "xterm-kitty") || env_is("TERM", "xterm-ghostty") ||
            env_is("TERM_PROGRAM", "ghostty") || getenv("KITTY_WINDOW_ID") != NULL);
}

static int takes_sixel(void)
{
    return !is_multiplexed() &&
           (env_has("TERM", "sixel") || env_is("TERM", "foot") || env_begins("TERM", "foot-") ||
            env_begins("TERM", "mlterm") || env_begins("TERM", "contour") ||
            env_is("TERM_PROGRAM", "WezTerm") || env_is("TERM_PROGRAM", "iTerm.app") ||
            env_is("TERM_PROGRAM", "mintty"));
}

static int has_true_color(void)
{
    return env_is("COLORTERM", "truecolor") || env_is("COLORTERM", "24bit") ||
           env_has("TERM", "-direct") || env_is("TERM", "xterm-kitty") ||
           env_is("TERM", "xterm-ghostty");
}

static void find_size(struct cli *cli, struct cli_screen *out)
{
    struct winsize window = { 0, 0, 0, 0 };
    int known = cli->out.terminal && ioctl(cli->out.fd, TIOCGWINSZ, &window) == 0 &&
                window.ws_col > 0 && window.ws_row > 0;

    out->columns = cli_env_number("COLUMNS", known ? window.ws_col : USUAL_COLUMNS);
    if (out->columns > MOST_COLUMNS)
        out->columns = MOST_COLUMNS;
    out->rows = known ? window.ws_row : USUAL_ROWS;
    if (!cli->out.terminal && out->rows < out->columns / 2) /* nothing scrolls away in a file */
        out->rows = out->columns / 2;
    out->rows = cli_env_number("LINES", out->rows);
    if (out->rows > MOST_COLUMNS)
        out->rows = MOST_COLUMNS;
    out->cell_width = known ? (size_t)window.ws_xpixel / window.ws_col : 0;
    out->cell_height = known ? (size_t)window.ws_ypixel / window.ws_row : 0;
    if (out->cell_width < 4 || out->cell_width > 64 || out->cell_height < 4 ||
        out->cell_height > 128) {
        out->cell_width = CELL_WIDTH;
        out->cell_height = CELL_HEIGHT;
    }
}

int cli_screen_find(struct cli *cli, struct cli_screen *out)
{
    static const char *const names[] = { "kitty", "sixel", "blocks", "text" };
    const char *name = NULL;

    memset(out, 0, sizeof(*out));
    CLI_TRY(cli_choice_option(cli, "draw", "kitty|sixel|blocks|text", &name));
    find_size(cli, out);
    out->how = !cli->out.color    ? CLI_DRAW_TEXT
               : !cli->out.terminal ? CLI_DRAW_BLOCKS
               : takes_kitty()      ? CLI_DRAW_KITTY
               : takes_sixel()      ? CLI_DRAW_SIXEL
                                    : CLI_DRAW_BLOCKS;
    for (size_t i = 0; name && i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(name, names[i]) == 0)
            out->how = (enum cli_draw)i;
    out->true_color = has_true_color();
    return BRC_OK;
}

/* ==== sizes ============================================== */

/* The pixels of a character. */
static void cell_of(const struct cli_screen *screen, size_t *width, size_t *height)
{
    int is_image = screen->how == CLI_DRAW_KITTY || screen->how == CLI_DRAW_SIXEL;

    *width = is_image ? screen->cell_width : 1;
    *height = is_image ? screen->cell_height : screen->how == CLI_DRAW_BLOCKS ? 2 : 1;
}

size_t cli_screen_cell(const struct cli_screen *screen)
{
    size_t width, height;

    cell_of(screen, &width, &height);
    return width;
}

static size_t shorter(size_t most, double scaled, uint64_t whole)
{
    size_t least = whole < LEAST_SIDE ? (size_t)whole : LEAST_SIDE;
    size_t side = scaled < (double)most ? (size_t)lround(scaled) : most;

    return side < least ? (least < most ? least : most) : side;
}

void cli_screen_fit(const struct cli_screen *screen, size_t columns, size_t rows, uint64_t width,
                    uint64_t height, size_t *pixel_width, size_t *pixel_height)
{
    size_t cell_width, cell_height, most_width, most_height, longer, times;
    double tall = screen->how == CLI_DRAW_TEXT ? 2 : 1, scale; /* a pixel is so often its width */

    cell_of(screen, &cell_width, &cell_height);
    most_width = columns * cell_width;
    most_height = rows * cell_height;
    longer = (size_t)(width > height ? width : height);
    times = longer <= SMALL_SIDE ? SMALL_SIDE * cell_width / longer : 1;
    while (times > 1 && ((double)width * (double)times > (double)most_width ||
                         (double)height * (double)times / tall > (double)most_height))
        times--;
    if (times > 1) {
        *pixel_width = (size_t)width * times;
        *pixel_height = (size_t)ceil((double)height * (double)times / tall);
        return;
    }
    scale = fmin((double)most_width / (double)width, (double)most_height * tall / (double)height);
    scale = scale < 1 ? scale : 1;
    *pixel_width = shorter(most_width, (double)width * scale, width);
    *pixel_height = shorter(most_height, (double)height * scale / tall, height);
}

/* ==== characters ========================================= */

/* From dark to bright. A blank is transparent. */
static const char ramp[] = ".:-=+*#%@";

enum { RAMP = sizeof(ramp) - 1 };

static char ramp_at(const uint8_t rgb[3])
{
    unsigned light = (unsigned)rgb[0] * 54 + (unsigned)rgb[1] * 183 + (unsigned)rgb[2] * 19;

    return ramp[light * RAMP / (255 * 256 + 1)];
}

static void draw_text(struct cli *cli, const struct cli_pixels *pixels)
{
    for (size_t y = 0; y < pixels->height; y++) {
        const uint8_t *row = pixels->rgba + y * pixels->width * 4;
        size_t end = pixels->width;

        while (end > 0 && row[(end - 1) * 4 + 3] < 128)
            end--;
        for (size_t x = 0; x < end; x++) {
            char c = row[x * 4 + 3] < 128 ? ' ' : ramp_at(row + x * 4);

            cli_put(cli, &c, 1);
        }
        cli_puts(cli, "\n");
    }
}

/* ---- half blocks ---------------------------- */

/* Returns the nearest of the six levels of the cube of colours. */
static unsigned cube_level(unsigned value)
{
    return value < 48 ? 0 : value < 115 ? 1 : (value - 35) / 40;
}

static unsigned square(unsigned a, unsigned b)
{
    return a > b ? (a - b) * (a - b) : (b - a) * (b - a);
}

/* Returns the nearest of the 240 colours that all terminals with 256 have in common. */
static unsigned nearest_of_256(const uint8_t rgb[3])
{
    static const unsigned levels[] = { 0, 95, 135, 175, 215, 255 };
    unsigned r = cube_level(rgb[0]), g = cube_level(rgb[1]), b = cube_level(rgb[2]);
    unsigned mean = ((unsigned)rgb[0] + rgb[1] + rgb[2]) / 3;
    unsigned step = mean < 8 ? 0 : mean > 238 ? 23 : (mean - 3) / 10, grey = 8 + 10 * step;
    unsigned to_cube =
        square(levels[r], rgb[0]) + square(levels[g], rgb[1]) + square(levels[b], rgb[2]);
    unsigned to_grey = square(grey, rgb[0]) + square(grey, rgb[1]) + square(grey, rgb[2]);

    return to_grey < to_cube ? 232 + step : 16 + 36 * r + 6 * g + b;
}

/* The colours that are set: that of the characters, and that of what is behind them. */
struct painting {
    struct cli *cli;
    int true_color;
    uint32_t set[2]; /* 0: the terminal's own; else 1 << 24 and the colour or its number */
};

/* `which` is 0 for the characters and 1 for what is behind them. NULL is the terminal's own. */
static void paint(struct painting *p, int which, const uint8_t *rgb)
{
    uint32_t color = !rgb            ? 0
                     : p->true_color ? (uint32_t)rgb[0] << 16 | (uint32_t)rgb[1] << 8 | rgb[2]
                                     : nearest_of_256(rgb);

    color |= rgb ? 1u << 24 : 0;
    if (p->set[which] == color)
        return;
    p->set[which] = color;
    if (!rgb)
        cli_printf(p->cli, "\033[%dm", which ? 49 : 39);
    else if (p->true_color)
        cli_printf(p->cli, "\033[%d;2;%d;%d;%dm", which ? 48 : 38, rgb[0], rgb[1], rgb[2]);
    else
        cli_printf(p->cli, "\033[%d;5;%um", which ? 48 : 38, (unsigned)(color & 255));
}

static void end_painted_line(struct painting *p)
{
    if (p->set[0] || p->set[1])
        cli_puts(p->cli, "\033[0m");
    p->set[0] = p->set[1] = 0;
}

static void draw_blocks(struct cli *cli, const struct cli_screen *screen,
                        const struct cli_pixels *pixels)
{
    struct painting p = { cli, screen->true_color, { 0, 0 } };

    for (size_t y = 0; y < pixels->height; y += 2) {
        for (size_t x = 0; x < pixels->width; x++) {
            const uint8_t *top = pixels->rgba + (y * pixels->width + x) * 4;
            const uint8_t *low = top + pixels->width * 4;

            top = top[3] < 128 ? NULL : top;
            low = y + 1 == pixels->height || low[3] < 128 ? NULL : low;
            paint(&p, 1, top ? low : NULL);
            if (top || low)
                paint(&p, 0, top ? top : low);
            cli_puts(cli, top ? "▀" : low ? "▄" : " ");
        }
        end_painted_line(&p);
        cli_puts(cli, "\n");
    }
}

/* ==== images ============================================= */

enum { KITTY_BYTES = 3072 }; /* 4096 characters in base64 */

static void put_base64(struct cli *cli, const uint8_t *data, size_t len)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    for (size_t i = 0; i < len; i += 3) {
        uint32_t bits = (uint32_t)data[i] << 16 | (i + 1 < len ? (uint32_t)data[i + 1] << 8 : 0) |
                        (i + 2 < len ? (uint32_t)data[i + 2] : 0);
        char out[4] = { digits[bits >> 18], digits[bits >> 12 & 63],
                        i + 1 < len ? digits[bits >> 6 & 63] : '=',
                        i + 2 < len ? digits[bits & 63] : '=' };

        cli_put(cli, out, 4);
    }
}

/* Parts of at most 4096 characters; m=1 says that another one follows, q=2 that no answer is
 * wanted. */
static void draw_kitty(struct cli *cli, const struct cli_pixels *pixels)
{
    size_t len = pixels->width * pixels->height * 4;

    for (size_t at = 0; at < len; at += KITTY_BYTES) {
        size_t n = len - at < KITTY_BYTES ? len - at : KITTY_BYTES;
        int more = at + n < len;

        if (at == 0)
            cli_printf(cli, "\033_Ga=T,f=32,s=%zu,v=%zu,q=2,m=%d;", pixels->width, pixels->height,
                       more);
        else
            cli_printf(cli, "\033_Gm=%d;", more);
        put_base64(cli, pixels->rgba + at, n);
        cli_puts(cli, "\033\\");
    }
    cli_puts(cli, "\n");
}

/* ---- sixel ---------------------------------- */

enum { SIXEL_COLORS = 256, SIXEL_SLOTS = 1024, NO_COLOR_YET = 0xffff };

struct sixels {
    struct cli *cli;
    size_t width, height;
    uint16_t *number; /* of each pixel's colour; NO_COLOR_YET: transparent       */
    uint32_t colors[SIXEL_COLORS];
    uint16_t slots[SIXEL_SLOTS]; /* numbers of colours, by a hash of the colour  */
    size_t ncolors;
};

/* Returns the number of the colour, which is added if there is room, else NO_COLOR_YET. */
static uint16_t sixel_number(struct sixels *s, uint32_t color)
{
    size_t slot = color * 2654435761u >> 22;

    for (; s->slots[slot] != NO_COLOR_YET; slot = (slot + 1) % SIXEL_SLOTS)
        if (s->colors[s->slots[slot]] == color)
            return s->slots[slot];
    if (s->ncolors == SIXEL_COLORS)
        return NO_COLOR_YET;
    s->colors[s->ncolors] = color;
    s->slots[slot] = (uint16_t)s->ncolors;
    return (uint16_t)s->ncolors++;
}

/* Numbers the colours of all pixels. A coarse colour has one of 6 levels a channel. Returns 0 if
 * there are too many colours. */
static int number_colors(struct sixels *s, const struct cli_pixels *pixels, int coarse)
{
    s->ncolors = 0;
    memset(s->slots, 0xff, sizeof(s->slots));
    for (size_t i = 0; i < s->width * s->height; i++) {
        const uint8_t *p = pixels->rgba + i * 4;
        uint32_t color = 0;

        for (int k = 0; k < 3; k++)
            color = color << 8 | (coarse ? (p[k] * 5u + 127) / 255 * 51 : p[k]);
        s->number[i] = NO_COLOR_YET;
        if (p[3] >= 128 && (s->number[i] = sixel_number(s, color)) == NO_COLOR_YET)
            return 0;
    }
    return 1;
}

/* Writes a sixel character so many times. */
static void put_sixel_run(struct cli *cli, char c, size_t times)
{
    if (times > 3)
        cli_printf(cli, "!%zu%c", times, c);
    for (; times > 0 && times <= 3; times--)
        cli_put(cli, &c, 1);
}

/* Writes where one colour is in six rows of pixels. */
static void put_sixel_color(const struct sixels *s, size_t y, size_t number)
{
    size_t run = 0;
    char last = 0;

    cli_printf(s->cli, "#%zu", number);
    for (size_t x = 0; x < s->width; x++) {
        unsigned bits = 0;

        for (size_t i = 0; i < 6 && y + i < s->height; i++)
            bits |= (unsigned)(s->number[(y + i) * s->width + x] == number) << i;
        if (run > 0 && last != (char)(63 + bits)) {
            put_sixel_run(s->cli, last, run);
            run = 0;
        }
        last = (char)(63 + bits);
        run++;
    }
    if (last != 63)
        put_sixel_run(s->cli, last, run);
    cli_puts(s->cli, "$");
}

static void put_sixel_rows(const struct sixels *s, size_t y)
{
    uint8_t used[SIXEL_COLORS] = { 0 };
    size_t end = y + 6 < s->height ? y + 6 : s->height;

    for (size_t i = y * s->width; i < end * s->width; i++)
        if (s->number[i] != NO_COLOR_YET)
            used[s->number[i]] = 1;
    for (size_t i = 0; i < s->ncolors; i++)
        if (used[i])
            put_sixel_color(s, y, i);
    cli_puts(s->cli, "-");
}

static void draw_sixel(struct cli *cli, const struct cli_pixels *pixels)
{
    struct sixels s = { .cli = cli, .width = pixels->width, .height = pixels->height };

    s.number = cli_regrow(NULL, s.width * s.height, sizeof(*s.number));
    if (!number_colors(&s, pixels, 0))
        (void)number_colors(&s, pixels, 1);
    cli_printf(cli, "\033P0;1;0q\"1;1;%zu;%zu", s.width, s.height);
    for (size_t i = 0; i < s.ncolors; i++)
        cli_printf(cli, "#%zu;2;%u;%u;%u", i, ((s.colors[i] >> 16) * 100 + 127) / 255,
                   ((s.colors[i] >> 8 & 255) * 100 + 127) / 255,
                   ((s.colors[i] & 255) * 100 + 127) / 255);
    for (size_t y = 0; y < s.height && !cli_signal(); y += 6)
        put_sixel_rows(&s, y);
    cli_puts(cli, "\033\\\n");
    free(s.number);
}

void cli_draw_pixels(struct cli *cli, const struct cli_screen *screen,
                     const struct cli_pixels *pixels)
{
    switch (screen->how) {
    case CLI_DRAW_KITTY:
        draw_kitty(cli, pixels);
        break;
    case CLI_DRAW_SIXEL:
        draw_sixel(cli, pixels);
        break;
    case CLI_DRAW_BLOCKS:
        draw_blocks(cli, screen, pixels);
        break;
    case CLI_DRAW_TEXT:
        draw_text(cli, pixels);
        break;
    }
}

void cli_draw_map(struct cli *cli, const struct cli_screen *screen, enum cli_map map,
                  const char *low, const char *high)
{
    enum { CELLS = 16 };
    struct painting p = { cli, screen->true_color, { 0, 0 } };
    uint8_t rgb[3];

    if (screen->how == CLI_DRAW_TEXT) {
        cli_printf(cli, "%s %s %s", low, ramp, high);
        return;
    }
    cli_printf(cli, "%s ", low);
    for (unsigned i = 0; i < CELLS; i++) {
        cli_map_color(map, i * 255 / (CELLS - 1), rgb);
        paint(&p, 1, rgb);
        cli_puts(cli, " ");
    }
    end_painted_line(&p);
    cli_printf(cli, " %s", high);
}

/* ==== lines ============================================== */

enum { PLOT_ROWS = 16, LEAST_PLOT_ROWS = 4, BESIDE = 2 };

/* The dots of a character: 2 by 4 in braille, one in text. */
static size_t dots_wide(const struct cli_screen *screen)
{
    return screen->how == CLI_DRAW_TEXT ? 1 : 2;
}

static size_t dots_high(const struct cli_screen *screen)
{
    return screen->how == CLI_DRAW_TEXT ? 1 : 4;
}

size_t cli_plot_width(const struct cli_screen *screen, size_t label)
{
    size_t most = screen->columns > label + BESIDE + 8 ? screen->columns - label - BESIDE : 8;

    return most * dots_wide(screen);
}

static size_t plot_rows(const struct cli_screen *screen)
{
    size_t most = screen->rows > LEAST_PLOT_ROWS + 4 ? screen->rows - 4 : LEAST_PLOT_ROWS;

    return most < PLOT_ROWS ? most : PLOT_ROWS;
}

/* Returns the row of dots of a value, counted from the top. */
static size_t dot_row(const struct cli_shade *limits, size_t rows, double value)
{
    double part = (value / 2 - limits->low / 2) / (limits->high / 2 - limits->low / 2);
    double at = (1 - part) * (double)(rows - 1);

    return !(at > 0) ? 0 : at >= (double)(rows - 1) ? rows - 1 : (size_t)lround(at);
}

/* Sets the dots of the line; where a column does not touch the one before it, up to its middle. */
static void set_dots(uint8_t *dots, size_t rows, const struct cli_line *line,
                     const struct cli_shade *limits)
{
    size_t before_top = 0, before_end = 0;
    int joins = 0;

    for (size_t x = 0; x < line->n; x++) {
        size_t top, end;

        if (isnan(line->low[x])) {
            joins = 0;
            continue;
        }
        top = dot_row(limits, rows, line->high[x]);
        end = dot_row(limits, rows, line->low[x]);
        for (size_t y = top; y <= end; y++)
            dots[y * line->n + x] = 1;
        for (size_t y = before_end + 1; joins && y < top; y++)
            dots[y * line->n + (y < (before_end + top + 1) / 2 ? x - 1 : x)] = 1;
        for (size_t y = end + 1; joins && y < before_top; y++)
            dots[y * line->n + (y < (end + before_top + 1) / 2 ? x : x - 1)] = 1;
        before_top = top;
        before_end = end;
        joins = 1;
    }
}

/* Writes the character of 2 by 4 dots: U+2800 and a bit for each dot. */
static void put_braille(struct cli *cli, const uint8_t *dots, size_t stride)
{
    static const uint8_t bits[4][2] = { { 1, 8 }, { 2, 16 }, { 4, 32 }, { 64, 128 } };
    unsigned code = 0;
    char out[3];

    for (size_t y = 0; y < 4; y++)
        for (size_t x = 0; x < 2; x++)
            code |= dots[y * stride + x] ? bits[y][x] : 0;
    out[0] = (char)0xe2;
    out[1] = (char)(0xa0 | code >> 6);
    out[2] = (char)(0x80 | (code & 63));
    cli_put(cli, out, 3);
}

void cli_draw_plot(struct cli *cli, const struct cli_screen *screen, const struct cli_line *line,
                   const struct cli_shade *limits, const char *const labels[2],
                   const char *const ends[2])
{
    size_t wide = dots_wide(screen), high = dots_high(screen), rows = plot_rows(screen);
    size_t low = cli_text_width(labels[0]), top = cli_text_width(labels[1]);
    size_t label = low > top ? low : top, cells = line->n / wide;
    uint8_t *dots = cli_regrow(NULL, line->n * rows * high, 1);
    const int is_text = screen->how == CLI_DRAW_TEXT;

    memset(dots, 0, line->n * rows * high);
    set_dots(dots, rows * high, line, limits);
    for (size_t y = 0; y < rows; y++) {
        const char *text = y == 0 ? labels[1] : y == rows - 1 ? labels[0] : "";

        cli_printf(cli, "%*s%s %s", (int)(label - cli_text_width(text)), "", text,
                   is_text ? "|" : "│");
        for (size_t x = 0; x < cells; x++) {
            const uint8_t *at = dots + y * high * line->n + x * wide;

            if (is_text)
                cli_put(cli, *at ? "*" : " ", 1);
            else
                put_braille(cli, at, line->n);
        }
        cli_puts(cli, "\n");
    }
    free(dots);
    cli_printf(cli, "%*s%s", (int)label + BESIDE, "", ends[0]);
    low = strlen(ends[0]) + strlen(ends[1]);
    cli_printf(cli, "%*s%s\n", (int)(low < cells ? cells - low : 1), "", ends[1]);
}
