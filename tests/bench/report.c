/*
 * Clocks, medians, and the rows of the report. With --tsv each number is also a line of a file, for
 * programs that compare two runs:
 *
 *     title TAB what TAB label TAB unit TAB better TAB value
 *
 * `better` is lower, higher or - (cannot be said). A ratio's line is what ours took, in seconds
 * ("s" by the clock and "cpu s" of the processor), without the limit.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"

static int rows_met, rows_missed, must_hold_missed;
static FILE *numbers;
static char head[256]; /* title TAB what */

double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

took start_clock(void)
{
    return (took){now_s(), cpu_s()};
}

took stop_clock(took start)
{
    return (took){now_s() - start.wall, cpu_s() - start.cpu};
}

double status_bytes(const char *field)
{
    char line[256];
    double kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f != NULL && fgets(line, sizeof(line), f) != NULL)
        if (strncmp(line, field, strlen(field)) == 0)
            kib = strtod(line + strlen(field) + 1, NULL);
    if (f != NULL)
        fclose(f);
    return kib * 1024;
}

void forget_peak(void)
{
    FILE *f = fopen("/proc/self/clear_refs", "w");
    if (f == NULL)
        return;
    fputs("5", f);
    fclose(f);
}

static int double_order(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double percentile(double *values, size_t n, double p)
{
    qsort(values, n, sizeof(*values), double_order);
    double at = p / 100 * (double)(n - 1);
    size_t i = (size_t)at;
    return i + 1 < n ? values[i] + (at - (double)i) * (values[i + 1] - values[i]) : values[n - 1];
}

void series_add(series *s, took value)
{
    if (s->n < SERIES_MAX)
        s->at[s->n++] = value;
}

static const char *verdict(double value, int way, double target)
{
    if (way == JUST_SHOWN)
        return "";
    int met = way == AT_LEAST ? value >= target : value <= target;
    rows_met += met;
    rows_missed += !met;
    return met ? "met" : "NOT MET";
}

void report_to(const char *path)
{
    numbers = fopen(path, "a");
    must_be(numbers != NULL, "opening the file of --tsv");
    setvbuf(numbers, NULL, _IOLBF, 0);
}

void report_head(const char *title, const char *what)
{
    printf("\n%s: %s\n", title, what);
    snprintf(head, sizeof(head), "%s\t%s", title, what);
}

/* Less of a time, of bytes and of requests is better where no target says so. */
static const char *better(const char *unit, int way)
{
    static const char *const units[] = {"s", "cpu s", "ms", "us", "ns a key", "B", "bytes", "MB"};
    if (way != JUST_SHOWN)
        return way == AT_MOST ? "lower" : "higher";
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (strcmp(unit, units[i]) == 0)
            return "lower";
    return "-";
}

void report_number(const char *label, double value, const char *unit, int way)
{
    while (*label == ' ')
        label++;
    if (numbers != NULL)
        fprintf(numbers, "%s\t%s\t%s\t%s\t%.9g\n", head, label, unit, better(unit, way), value);
}

static void target_text(char *out, size_t size, int way, double target)
{
    if (way == JUST_SHOWN)
        *out = '\0';
    else
        snprintf(out, size, "%s %g", way == AT_LEAST ? ">=" : "<=", target);
}

static void ratio_numbers(const char *label, const series *ours)
{
    double wall[SERIES_MAX], cpu[SERIES_MAX];
    for (int i = 0; i < ours->n; i++) {
        wall[i] = ours->at[i].wall;
        cpu[i] = ours->at[i].cpu;
    }
    report_number(label, percentile(wall, (size_t)ours->n, 50), "s", JUST_SHOWN);
    report_number(label, percentile(cpu, (size_t)ours->n, 50), "cpu s", JUST_SHOWN);
}

static double median_rate(const series *s, double mb)
{
    double rates[SERIES_MAX];
    for (int i = 0; i < s->n; i++)
        rates[i] = mb / s->at[i].wall;
    return percentile(rates, (size_t)s->n, 50);
}

void report_ratio(const char *label, const series *ours, const series *limit, double mb, int way,
                  double target)
{
    double wall[SERIES_MAX], cpu[SERIES_MAX];
    char want[32];
    size_t n = (size_t)(ours->n < limit->n ? ours->n : limit->n);
    for (size_t i = 0; i < n; i++) {
        wall[i] = limit->at[i].wall / ours->at[i].wall;
        cpu[i] = limit->at[i].cpu / ours->at[i].cpu;
    }
    double median = percentile(wall, n, 50);
    target_text(want, sizeof(want), way, target);
    printf("  %-50s %6.2f (%.2f..%.2f)  %-8s %-8s cpu %.2f, %.0f of %.0f MB/s\n", label, median,
           wall[0], wall[n - 1], want, verdict(median, way, target), percentile(cpu, n, 50),
           median_rate(ours, mb), median_rate(limit, mb));
    if (*label != ' ') /* else the row above has the same numbers */
        ratio_numbers(label, ours);
}

void report_value(const char *label, double value, const char *unit, int way, double target,
                  const char *context)
{
    char want[32], number[48];
    target_text(want, sizeof(want), way, target);
    if (fabs(value) >= 1000)
        snprintf(number, sizeof(number), "%.0f %s", value, unit);
    else
        snprintf(number, sizeof(number), "%.3g %s", value, unit);
    printf("  %-50s %-19s  %-8s %-8s %s\n", label, number, want, verdict(value, way, target),
           context != NULL ? context : "");
    report_number(label, value, unit, way);
}

void report_judged(int met)
{
    rows_met += met;
    rows_missed += !met;
    must_hold_missed += !met;
}

int report_total(void)
{
    printf("\n%d met, %d not met\n", rows_met, rows_missed);
    return must_hold_missed > 0;
}
