package main

import (
	"math/rand/v2"
	"slices"
)

// restarts is the number of random orders that are improved for each circle of files. A
// greater number found no better order for any package.
const restarts = 60

// order returns the files in an order in which few edges lead from a later file to an
// earlier one. It orders each strongly connected component separately, because edges
// between two components need not go back up. Within a component, it starts from several
// random orders. It improves each of them: it moves one file at a time to the best place,
// until no move helps. The best result is returned. The random numbers are the same in
// each run.
func order(edges [][]bool) []int {
	var out []int
	for _, c := range components(edges) {
		out = append(out, orderCircle(edges, c)...)
	}
	return out
}

func orderCircle(edges [][]bool, files []int) []int {
	if len(files) < 3 {
		return files
	}
	random := rand.New(rand.NewPCG(1, uint64(len(files))))
	var best []int
	fewest := -1
	for range restarts {
		o := slices.Clone(files)
		random.Shuffle(len(o), func(i, j int) { o[i], o[j] = o[j], o[i] })
		improve(edges, o)
		if n := backUp(edges, o); fewest < 0 || n < fewest {
			best, fewest = o, n
		}
	}
	return best
}

// improve moves single files until no move makes the number of edges back up smaller.
func improve(edges [][]bool, o []int) {
	for moved := true; moved; {
		moved = false
		for i := range o {
			f, best, at := o[i], 0, i
			// If f moves down past g, f's edge to g becomes an edge back up, and g's edge
			// to f stops being one.
			for gain, j := 0, i+1; j < len(o); j++ {
				gain += count(edges[o[j]][f]) - count(edges[f][o[j]])
				if gain > best {
					best, at = gain, j
				}
			}
			for gain, j := 0, i-1; j >= 0; j-- {
				gain += count(edges[f][o[j]]) - count(edges[o[j]][f])
				if gain > best {
					best, at = gain, j
				}
			}
			if at != i {
				o = slices.Insert(slices.Delete(o, i, i+1), at, f)
				moved = true
			}
		}
	}
}

func backUp(edges [][]bool, o []int) (n int) {
	for i, f := range o {
		for _, g := range o[:i] {
			n += count(edges[f][g])
		}
	}
	return n
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// components returns the strongly connected components. A component comes before the
// components that it uses. (Tarjan's algorithm returns them in the opposite order.)
func components(edges [][]bool) (out [][]int) {
	n := len(edges)
	index, low, on := make([]int, n), make([]int, n), make([]bool, n)
	var stack []int
	next := 1
	var visit func(v int)
	visit = func(v int) {
		index[v], low[v] = next, next
		next++
		stack, on[v] = append(stack, v), true
		for w, edge := range edges[v] {
			switch {
			case !edge:
			case index[w] == 0:
				visit(w)
				low[v] = min(low[v], low[w])
			case on[w]:
				low[v] = min(low[v], index[w])
			}
		}
		if low[v] != index[v] {
			return
		}
		at := slices.Index(stack, v)
		c := slices.Clone(stack[at:])
		stack = stack[:at]
		for _, w := range c {
			on[w] = false
		}
		slices.Sort(c)
		out = append(out, c)
	}
	for v := range n {
		if index[v] == 0 {
			visit(v)
		}
	}
	slices.Reverse(out)
	return out
}
